import { expect } from "chai";
import { boolean, constantFrom, record } from "fast-check";
import { type Command, choice, living, on, openBecome, heldGo } from "./commands.ts";
import { agree } from "./compare.ts";
import { ask, subscribe } from "./world.ts";
import { isOn, type Manner, type Wanted } from "./model.ts";

export interface NewSubscription {
  readonly choice: number;
  readonly wanted: Wanted;
  readonly isFiltered: boolean;
  readonly isActive: boolean;
}

function subscribing({ choice: at, wanted, isFiltered, isActive }: NewSubscription): Command {
  return {
    check: ({ users, subscriptions }) =>
      subscriptions.length < 6 && users[at % users.length]?.isDisabled === false,
    async run(model, world) {
      const user = model.users[at % model.users.length];
      if (user === undefined) return;
      await subscribe(model, world, { user, wanted, isFiltered, isActive });
      await agree(model, world, {});
    },
    toString: () => `subscribe to ${wanted}${isFiltered ? " that are paid" : ""}${isActive ? "" : ", off"}`,
  };
}
export const subscribes = record<NewSubscription>({
  choice,
  wanted: constantFrom<Wanted>("notes", "alerts", "*"),
  isFiltered: boolean(),
  isActive: boolean(),
}).map(subscribing);

export const pause = on(
  "pause",
  (model) => living(model).filter(({ isActive }) => isActive),
  async (one, _model, world) => {
    await ask(one.user, world, ["PUT", `/webhooks/${one.id}`, { is_active: false }], 200);
    one.isActive = false;
    return {};
  },
);

export const resume = on(
  "resume",
  (model) => living(model).filter(({ isActive }) => !isActive),
  async (one, model, world) => {
    await ask(one.user, world, ["PUT", `/webhooks/${one.id}`, { is_active: true }], 200);
    Object.assign(one, { isActive: true, isOver: false });
    return heldGo(model, (other) => other === one);
  },
);

export const discard = on("discard what is held of", living, async (one, model, world) => {
  const held = model.deliveries.filter((own) => own.subscription === one && own.status === "held");
  const answer = await ask(one.user, world, ["POST", `/webhooks/${one.id}/discard-held`, {}], 202);
  expect(answer).to.deep.equal({ held: held.length });
  return openBecome(model, "cancelled", (own) => own.subscription === one && own.status === "held");
});

export const rotate = on("rotate the secret of", living, async (one, _model, world) => {
  const path = `/webhooks/${one.id}/rotate-secret`;
  const { secret } = await ask(one.user, world, ["POST", path, { grace: 60 }], 200);
  world.secrets.set(one.path, String(secret));
  return {};
});

export const remove = on("delete", living, async (one, model, world) => {
  await ask(one.user, world, ["DELETE", `/webhooks/${one.id}`], 204);
  Object.assign(one, { isDeleted: true, isActive: false });
  return openBecome(model, "cancelled", ({ subscription }) => subscription === one);
});

export const behave = (manner: Manner): ((at: number) => Command) =>
  on(
    `have the receiver answer ${manner}`,
    ({ subscriptions }) => subscriptions.filter((one) => one.manner !== manner && !one.isDeleted),
    async (one, _model, world) => {
      world.manners.set(one.path, manner);
      one.manner = manner;
      return {};
    },
  );

export const disable = on(
  "disable user",
  ({ users }) => users.filter(({ isDisabled }) => !isDisabled),
  async (user, _model, world) => {
    await ask(world.admin, world, ["PUT", `/users/${user.id}`, { is_disabled: true }], 200);
    user.isDisabled = true;
    return {};
  },
);

export const enable = on(
  "enable user",
  ({ users }) => users.filter(({ isDisabled }) => isDisabled),
  async (user, model, world) => {
    await ask(world.admin, world, ["PUT", `/users/${user.id}`, { is_disabled: false }], 200);
    user.isDisabled = false;
    return heldGo(model, (one) => one.user === user && isOn(one));
  },
);

export const holdTooLong = on(
  "let eight days pass for",
  (model) => living(model).filter(({ isActive, isOver }) => !isActive && !isOver),
  async (one, model, world) => {
    await world.sql(
      "UPDATE svc.subscriptions SET disabled_at = disabled_at - interval '8 days' WHERE id = $1",
      [one.id],
    );
    one.isOver = true;
    return openBecome(
      model,
      "cancelled",
      ({ subscription, status }) => subscription === one && status === "held",
    );
  },
);
