import type { JSX, ReactNode, SubmitEvent } from "react";
import { Dialog as AriaDialog } from "react-aria-components/Dialog";
import { Heading } from "react-aria-components/Heading";
import { Modal, ModalOverlay } from "react-aria-components/Modal";
import { faultsOf, otherFaultsOf } from "../api/api-error.ts";
import { useWrite } from "../api/use-write.ts";
import { Button } from "./button.tsx";
import { useIsShown, useLeaveQuestion } from "./leaving.ts";
import { ErrorLine, messageOf } from "./state.tsx";
import { toast } from "./toast.tsx";
import "./dialog.css";

/** Shows a dialog over the page. Escape closes it, and the focus returns to its previous place. */
export function Dialog({
  title,
  isWide = false,
  isRequired = false,
  question = null,
  step,
  onClose,
  children,
}: {
  readonly title: string;
  readonly isWide?: boolean;
  /** Whether neither Escape nor a click outside closes the dialog. */
  readonly isRequired?: boolean;
  /** Question before Escape or a click outside closes the dialog, and before its page is left. */
  readonly question?: string | null;
  /** Name of the step that is shown. Another step takes the focus. */
  readonly step?: string;
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
        <AriaDialog key={step} className="dialog-inside stack">
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
 * Asks before an important action, and explains its effect. An error is shown in the dialog, which
 * stays open. A toast shows the error when the dialog is already closed.
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
  /** Name of the action: "Delete the order". */
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
      <div className="row dialog-actions">
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

/** A value that a write creates and that is shown only once, such as a token. */
interface Once {
  readonly title: string;
  /**
   * Question before the page is left. It applies from the request on, because the answer may be
   * lost.
   */
  readonly question: string;
  /** Undefined until the answer arrives. */
  readonly shown: ReactNode;
}

/**
 * Asks for the fields of a write, and sends it. Errors are shown at their fields, or below all
 * fields. A value that is shown once stays in the same dialog until the user has stored it.
 */
export function FormDialog({
  title,
  submitLabel,
  fields,
  write: { error, isPending, mutate },
  question,
  once,
  onClose,
  children,
}: {
  readonly title: string;
  /** Name of the action: "Create the user". */
  readonly submitLabel: string;
  /** Names of the fields that show their messages. */
  readonly fields: readonly string[];
  readonly write: { readonly error: unknown; readonly isPending: boolean; readonly mutate: () => void };
  readonly question: string | null;
  readonly once?: Once;
  readonly onClose: () => void;
  readonly children: ReactNode;
}): JSX.Element {
  // A refusal may concern no field, such as one for too many tokens.
  const areShown =
    fields.some((name) => faultsOf(error, name).length > 0) && otherFaultsOf(error, fields).length === 0;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    mutate();
  };
  if (once?.shown !== undefined)
    return (
      <Dialog title={once.title} isWide isRequired question={once.question} step="stored" onClose={onClose}>
        <div className="stack">{once.shown}</div>
        <div className="row dialog-actions">
          <Button kind="primary" icon="check" onPress={onClose}>
            I have stored it
          </Button>
        </div>
      </Dialog>
    );
  const isHeld = once !== undefined && isPending;
  return (
    <Dialog title={title} isRequired={isHeld} question={isHeld ? once.question : question} onClose={onClose}>
      <form className="stack" onSubmit={submit} noValidate>
        {children}
        {!areShown && <ErrorLine error={error} />}
        <div className="row dialog-actions">
          <Button isDisabled={isHeld} onPress={onClose}>
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
