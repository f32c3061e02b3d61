import type { JSX } from "react";
import type { WebhookWithSecret } from "../../api/webhook-types.ts";
import { Button } from "../../parts/button.tsx";
import { CodeBlock, CopyButton } from "../../parts/code.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useLeaveQuestion } from "../../parts/leaving.ts";
import { Card } from "../../parts/page.tsx";
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
  const release = useLeaveQuestion(leaveQuestion);
  const finish = (): void => {
    release();
    onDone();
  };
  return (
    <>
      <Card
        title="The secret"
        actions={
          <Button kind="primary" icon="check" onPress={finish}>
            I have stored it
          </Button>
        }
      >
        <Secret webhook={webhook} />
      </Card>
      <Card title="Verify what arrives" note="Each of these is run against real deliveries in the tests.">
        <VerificationCode />
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
      <p className="once" role="status">
        <Icon name="key" /> This is shown once. Store it where the receiver finds it.
      </p>
      <SecretLine label="Secret" text={secret} />
      <SecretLine label="For libraries of Standard Webhooks" text={standard} />
    </div>
  );
}

function SecretLine({ label, text }: { readonly label: string; readonly text: string }): JSX.Element {
  return (
    <div>
      <div className="small muted">{label}</div>
      <div className="secret-line">
        <code className="break">{text}</code>
        <CopyButton text={text} />
      </div>
    </div>
  );
}

/** Shows the code that verifies a delivery, in five languages. */
export function VerificationCode(): JSX.Element {
  return (
    <Tabs
      label="Languages"
      tabs={verification.map(({ id, title, code }) => ({
        id,
        title,
        content: <CodeBlock label={`Code for ${title}`} text={code} />,
      }))}
    />
  );
}
