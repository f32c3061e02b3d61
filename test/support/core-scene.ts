import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import { openCoreDatabase, type CoreDatabase } from "./core-database.ts";
import { createWork, type Work } from "./work.ts";

/** The service's own tables in a separate database, emptied before each test. */
export interface CoreScene {
  readonly core: CoreDatabase;
  readonly work: Work;
  readonly store: DeliveryStore;
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Registers the hooks of the surrounding `describe`. The fields exist from the first hook on. */
export function useCoreScene(): CoreScene {
  const scene = {} as Mutable<CoreScene>;
  before(async () => {
    scene.core = await openCoreDatabase();
    scene.work = createWork(scene.core.prisma);
    scene.store = createDeliveryStore({ sql: scene.core.sql });
  });
  beforeEach(() => scene.work.clear());
  after(() => scene.core.close());
  return scene;
}
