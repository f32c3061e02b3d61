import go from "./verify.go?raw";
// oxlint-disable-next-line import/default -- Vite gives the text of the file.
import javaScript from "./verify.js?raw";
import php from "./verify.php?raw";
import python from "./verify.py?raw";
import ruby from "./verify.rb?raw";

/** Code that verifies a delivery, as shown in docs/webhooks.md and run by the tests. */
export const verification: readonly { readonly id: string; readonly title: string; readonly code: string }[] =
  [
    { id: "js", title: "JavaScript", code: javaScript },
    { id: "py", title: "Python", code: python },
    { id: "go", title: "Go", code: go },
    { id: "php", title: "PHP", code: php },
    { id: "rb", title: "Ruby", code: ruby },
  ];
