import { useQuery } from "@tanstack/react-query";
import type { JSX } from "react";
import { LinkButton } from "../../parts/button.tsx";
import { CodeBlock, JsonView } from "../../parts/code.tsx";
import { Card, Facts, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import type { ConfigurationInEffect } from "./types.ts";
import { recordsPath } from "../resources/record-key.ts";

/** Shows the definition of a resource as it is in effect, and its Prisma model. */
export function ResourcePage({ name }: { readonly name: string }): JSX.Element {
  const query = useQuery<ConfigurationInEffect>({ queryKey: ["/configuration"] });
  return (
    <Page
      title={name}
      crumbs={[{ title: "Configuration", href: "/admin/configuration" }]}
      actions={
        <LinkButton href={recordsPath(name)} icon="resources">
          Its records
        </LinkButton>
      }
    >
      <QueryView query={query}>
        {({ resources }) => {
          const resource = resources.find((one) => one.name === name);
          if (resource === undefined)
            return (
              <Empty
                title={`There is no resource ${name}`}
                action={<LinkButton href="/admin/configuration">All resources</LinkButton>}
              />
            );
          return (
            <>
              <Card>
                <Facts facts={{ File: <code>{resource.file}</code> }} />
              </Card>
              <Tabs
                label="Shown as"
                tabs={[
                  {
                    id: "definition",
                    title: "Definition",
                    content: <JsonView value={resource.definition} label="Definition" />,
                  },
                  {
                    id: "model",
                    title: "Prisma model",
                    content: <CodeBlock text={resource.prisma_model} label="Prisma model" />,
                  },
                ]}
              />
            </>
          );
        }}
      </QueryView>
    </Page>
  );
}
