import type { BenchContext } from "../requests.ts";
import { type CrowdResult, measureCrowd } from "./crowd.ts";
import { type FeatureResult, measureFeatures } from "./features.ts";
import { measureReplay, type ReplayResult } from "./replay.ts";

export interface WebhookResults {
  readonly crowd: readonly CrowdResult[];
  readonly features: readonly FeatureResult[];
  readonly replay: ReplayResult;
}

export async function measureWebhooks(context: BenchContext): Promise<WebhookResults> {
  return {
    features: await measureFeatures(context),
    replay: await measureReplay(context),
    crowd: await measureCrowd(context),
  };
}
