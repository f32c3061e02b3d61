import { Component, type ReactNode } from "react";
import { Button } from "../parts/button.tsx";
import { ErrorNote } from "../parts/state.tsx";

interface State {
  readonly error: unknown;
}

/**
 * Keeps a fault of one page from removing the whole console. React supports this only in a class.
 */
export class FaultBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <>
        <ErrorNote error={this.state.error} />
        <Button icon="refresh" onPress={() => location.reload()}>
          Load the page again
        </Button>
      </>
    );
  }
}
