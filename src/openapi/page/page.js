/* global SwaggerUIBundle, document, fetch, location */
// Loads the document, with a token where it needs one, and shows it. The token stays in memory.

const opening = document.querySelector("#opening");
const message = document.querySelector("#message");
const input = document.querySelector("#token");

/** Shows the reference when the document is available. Returns the status of the answer. */
async function open(token) {
  const headers = token === "" ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch("openapi.json", { headers, cache: "no-store" });
  if (!response.ok) return response.status;
  const spec = await response.json();
  // Requests go to the server of this page, whatever name the service has for itself.
  spec.servers = [{ url: location.pathname.replace(/\/docs$/, "") || "/" }];
  opening.hidden = true;
  const ui = SwaggerUIBundle({
    spec,
    domNode: document.querySelector("#reference"),
    validatorUrl: null,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    filter: true,
    onComplete: () => {
      if (token !== "") ui.preauthorizeApiKey("token", token);
    },
  });
  return response.status;
}

function sentenceOf(status) {
  if (status === 401) return "The token is not valid.";
  if (status === 429) return "Too many requests. Try again later.";
  return `The document could not be loaded (status ${status}).`;
}

async function start(token) {
  try {
    const status = await open(token);
    if (status === 200) return;
    opening.hidden = false;
    if (token !== "" || status !== 401) message.textContent = sentenceOf(status);
  } catch {
    opening.hidden = false;
    message.textContent = "The service does not answer.";
  }
  input.focus();
}

opening.addEventListener("submit", (event) => {
  event.preventDefault();
  message.textContent = "";
  void start(input.value.trim());
});

void start("");
