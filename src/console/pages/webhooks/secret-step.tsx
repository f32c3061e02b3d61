import type { JSX } from "react";
import type { WebhookWithSecret } from "../../api/webhook-types.ts";
import { Button } from "../../parts/button.tsx";
import { CodeBlock } from "../../parts/code.tsx";
import { useLeaveQuestion } from "../../parts/leaving.ts";
import { Card } from "../../parts/page.tsx";
import { Note } from "../../parts/state.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { verification } from "../../verification/verification.ts";
import { TestPanel } from "./test-panel.tsx";

/** Question before a person leaves a secret that is shown once. */
export const leaveQuestion = "The secret is shown this once. Leave it without having stored it?";

/** Shows a secret this once, code that verifies its signatures, and a test delivery. */
export function SecretStep({
  webhook,
  onDone,
}: {
  readonly webhook: WebhookWithSecret;
  readonly onDone: () => void;
}): JSX.Element {
  useLeaveQuestion(leaveQuestion);
  return (
    <>
      <Card
        title="The secret"
        actions={
          <Button kind="primary" icon="check" onPress={onDone}>
            I have stored it
          </Button>
        }
      >
        <Secret webhook={webhook} />
      </Card>
      <Card title="Verify what arrives" note="Each of these is run against real deliveries in the tests.">
        <Tabs
          label="Languages"
          tabs={verification.map(({ id, title, code }) => ({
            id,
            title,
            content: <CodeBlock label={`Code for ${title}`} text={code} />,
          }))}
        />
      </Card>
      <TestPanel webhook={webhook} />
    </>
  );
}

/** Shows a new secret in both its forms. */
export function Secret({
  webhook: { secret, standard_secret: standard },
}: {
  readonly webhook: Pick<WebhookWithSecret, "secret" | "standard_secret">;
}): JSX.Element {
  return (
    <div className="stack">
      <Note tone="warn" icon="key" role="status">
        This is shown once. Store it where the receiver finds it.
      </Note>
      <CodeBlock isWhole label="Secret" text={secret} />
      <div>
        <p className="small muted">The same, for libraries of Standard Webhooks</p>
        <CodeBlock isWhole label="Secret for libraries of Standard Webhooks" text={standard} />
      </div>
    </div>
  );
}
