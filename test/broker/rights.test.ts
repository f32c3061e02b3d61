import { expect } from "chai";
import { connectRabbitMq } from "../../src/broker/rabbitmq.ts";
import { exchanges } from "../../src/broker/topology.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { startPrivateRabbitMq, type PrivateRabbitMq } from "../support/rabbitmq.ts";
import { until } from "../support/wait.ts";

/** Returns a text as Erlang writes its bytes. */
const bytes = (text: string): string => `<<${[...Buffer.from(text)].join(",")}>>`;

describe("connectRabbitMq as a user with few rights", () => {
  let server: PrivateRabbitMq;
  let url: URL;

  before(async () => {
    server = await startPrivateRabbitMq();
    await server.ctl("add_user", "limited", "a password");
    url = new URL(server.url);
    [url.username, url.password] = ["limited", "a password"];
  });

  after(() => server.dispose());

  it("waits for missing rights, names them, and starts when they are granted", async () => {
    await server.ctl("set_permissions", "limited", "^svc\\.events$", "^svc\\.", "^svc\\.");
    const reasons: string[] = [];
    const log = createLog({ level: "silent" });
    const onWait = (reason: string): void => void reasons.push(reason);
    const connecting = connectRabbitMq({ url: url.href, log, onWait });

    await until(() => reasons.length > 0, { what: "a reason" });
    // The rights of the user in docs/production.md.
    await server.ctl("set_permissions", "limited", "^svc\\.", "^svc\\.", "^svc\\.");
    const broker = await connecting;
    const event = {
      exchange: exchanges.events,
      routingKey: "a.on_create",
      messageId: "a",
      body: Buffer.from("{}"),
    };
    const outcomes = await broker.publish([event]);
    await broker.close();

    expect(reasons[0]).to.match(/ACCESS_REFUSED - .*'svc\.deliveries'.*'limited'/);
    expect(outcomes).to.deep.equal([{ kind: "confirmed" }]);
  });

  it("signs in with a user and a password beyond ASCII, as a URL encodes them", async () => {
    const [user, password] = ["jürgen", "pä%ß €"];
    await server.ctl(
      "eval",
      `rabbit_auth_backend_internal:add_user(${bytes(user)}, ${bytes(password)}, <<"test">>), ` +
        `rabbit_auth_backend_internal:set_permissions(${bytes(user)}, <<"/">>, <<".*">>, <<".*">>, <<".*">>, <<"test">>).`,
    );
    [url.username, url.password] = [encodeURIComponent(user), encodeURIComponent(password)];

    const broker = await connectRabbitMq({ url: url.href, log: createLog({ level: "silent" }) });

    expect(broker.isConnected()).to.equal(true);
    await broker.close();
  });
});
