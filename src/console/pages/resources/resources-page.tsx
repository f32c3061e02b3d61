import type { JSX } from "react";
import { Route, Switch, useParams } from "wouter";
import { usePathname } from "wouter/use-browser-location";
import { NoPage } from "../../parts/no-page.tsx";
import { Card, Page } from "../../parts/page.tsx";
import { Empty, QueryView } from "../../parts/state.tsx";
import { LinkButton } from "../../parts/button.tsx";
import { NewRecordPage } from "./new-record-page.tsx";
import { idAtEnd } from "./path-id.ts";
import { RecordPage } from "./record-page.tsx";
import { ResourceList } from "./resource-list.tsx";
import { ResourceTable } from "./resource-table.tsx";
import { unknownShape, useShapes, type ResourceShape } from "./shape.ts";

export function ResourcesPage(): JSX.Element {
  return (
    <Switch>
      <Route path="/resources">
        <ResourceList />
      </Route>
      <Route path="/resources/:name">
        <WithShape>{(shape) => <ResourceTable key={shape.name} shape={shape} />}</WithShape>
      </Route>
      {/* One segment more than a record, whose key may also be `new`. */}
      <Route path="/resources/:name/-/new">
        <WithShape>{(shape) => <NewRecordPage key={shape.name} shape={shape} />}</WithShape>
      </Route>
      <Route path="/resources/:name/:id">
        <WithShape>{(shape, id) => <RecordPage key={id} shape={shape} id={id} />}</WithShape>
      </Route>
      <Route component={NoPage} />
    </Switch>
  );
}

/** Reads the shape of the resource in the URL. */
function WithShape({
  children,
}: {
  /** `id` is the last part of the URL. */
  readonly children: (shape: ResourceShape, id: string) => JSX.Element;
}): JSX.Element {
  const { name = "" } = useParams<Partial<Record<"name", string>>>();
  const path = usePathname();
  const shapes = useShapes();
  const shape = shapes.data === null ? unknownShape(name) : shapes.data?.get(name);
  if (shape !== undefined) return children(shape, idAtEnd(path));
  return (
    <Page title={name} crumbs={[{ title: "Resources", href: "/resources" }]}>
      <Card>
        <QueryView query={shapes}>
          {() => (
            <Empty
              title={`There is no resource ${name}`}
              action={<LinkButton href="/resources">To the resources</LinkButton>}
            >
              It has another name, or its mapping file is not loaded.
            </Empty>
          )}
        </QueryView>
      </Card>
    </Page>
  );
}
