import type { JSX, ReactNode, SubmitEvent } from "react";
import { Dialog as AriaDialog } from "react-aria-components/Dialog";
import { Heading } from "react-aria-components/Heading";
import { Modal, ModalOverlay } from "react-aria-components/Modal";
import { ApiError } from "../api/api-error.ts";
import { useWrite } from "../api/use-write.ts";
import { Button } from "./button.tsx";
import { useIsShown, useLeaveQuestion } from "./leaving.ts";
import { ErrorLine, messageOf } from "./state.tsx";
import { toast } from "./toast.tsx";
import "./dialog.css";

/** Asks or shows something over the page. Escape closes it, and focus goes back to where it was. */
export function Dialog({
  title,
  isWide = false,
  isRequired = false,
  question = null,
  onClose,
  children,
}: {
  readonly title: string;
  readonly isWide?: boolean;
  /** Neither Escape nor a click beside it closes it. */
  readonly isRequired?: boolean;
  /** Asked before Escape or a click beside it closes it, and before its page is left. */
  readonly question?: string | null;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): JSX.Element {
  useLeaveQuestion(question);
  return (
    <ModalOverlay
      className="backdrop"
      isOpen
      isDismissable={!isRequired}
      isKeyboardDismissDisabled={isRequired}
      onOpenChange={(isOpen) => {
        // oxlint-disable-next-line no-alert -- The same question as before the page is left.
        if (!isOpen && (question === null || window.confirm(question))) onClose();
      }}
    >
      <Modal className={`dialog${isWide ? " wide" : ""}`}>
        <AriaDialog className="dialog-inside">
          <Heading slot="title" className="dialog-title">
            {title}
          </Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/**
 * Asks before something is done that matters, and says what it will do. What goes wrong is said
 * here, and the dialog stays; a toast shows the error when the dialog is closed by then.
 */
export function ConfirmDialog({
  title,
  children,
  confirmLabel,
  isDangerous = true,
  onConfirm,
  onClose,
}: {
  readonly title: string;
  readonly children: ReactNode;
  /** Names the act: "Delete the order". */
  readonly confirmLabel: string;
  readonly isDangerous?: boolean;
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}): JSX.Element {
  const isShown = useIsShown();
  const confirm = useWrite({
    mutationFn: onConfirm,
    onSuccess: onClose,
    onError: (error) => {
      if (!isShown()) toast(messageOf(error), { isBad: true });
    },
  });
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="stack">{children}</div>
      <ErrorLine error={confirm.error} />
      <div className="dialog-actions">
        <Button autoFocus onPress={onClose}>
          Cancel
        </Button>
        <Button
          kind={isDangerous ? "danger" : "primary"}
          isBusy={confirm.isPending}
          onPress={() => confirm.mutate()}
        >
          {confirmLabel}
        </Button>
      </div>
    </Dialog>
  );
}

/**
 * Asks for the fields of a write, and sends it. What goes wrong is said at its field, or below all
 * of them.
 */
export function FormDialog({
  title,
  submitLabel,
  write: { error, isPending, mutate },
  isRequired = false,
  question,
  onClose,
  children,
}: {
  readonly title: string;
  /** Names the act: "Make the user". */
  readonly submitLabel: string;
  readonly write: { readonly error: unknown; readonly isPending: boolean; readonly mutate: () => void };
  readonly isRequired?: boolean;
  readonly question: string | null;
  readonly onClose: () => void;
  /** The fields, by the server's messages for each. */
  readonly children: (errors: ApiError["fields"]) => ReactNode;
}): JSX.Element {
  const errors = error instanceof ApiError ? error.fields : {};
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    mutate();
  };
  return (
    <Dialog title={title} isRequired={isRequired} question={question} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        {children(errors)}
        {Object.keys(errors).length === 0 && <ErrorLine error={error} />}
        <div className="dialog-actions">
          <Button isDisabled={isRequired} onPress={onClose}>
            Cancel
          </Button>
          <Button kind="primary" type="submit" isBusy={isPending}>
            {submitLabel}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
