import { expect } from "chai";
import { notesYaml } from "../support/notes.ts";
import { exchange } from "../support/raw.ts";
import { serviceOfSuite, type TestUser } from "../support/service.ts";

describe("page links of an API with http.hosts", () => {
  const service = serviceOfSuite({
    mode: "servers",
    resources: { "notes.yaml": notesYaml },
    http: { hosts: ["api.example.com", "api.example.org"] },
  });
  let ada: TestUser;

  before(async () => {
    ada = await service.createUser();
  });

  /** Returns the link back from the second page of a list. */
  async function prevPageUrl(path: string, host: string): Promise<unknown> {
    const head = `GET /svc-api/${path}?page=2 HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${ada.token}`;
    const [answer] = await exchange(service.api.port, `${head}\r\nConnection: close\r\n\r\n`);
    return (answer?.json as { readonly prev_page_url: unknown } | undefined)?.prev_page_url;
  }

  for (const path of ["resources/notes", "webhook-deliveries"])
    it(`lead to the host of the request when it is one of them, else to the first: ${path}`, async () => {
      const links = [];
      for (const host of ["api.example.org:8443", "evil.example.net"])
        links.push(await prevPageUrl(path, host));

      expect(links).to.deep.equal([
        `http://api.example.org:8443/svc-api/${path}?page=1`,
        `http://api.example.com/svc-api/${path}?page=1`,
      ]);
    });
});
