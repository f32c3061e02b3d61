import { settingIn, type Config } from "./load.ts";
import { placeOf, settingKeys, settings, type SettingKey } from "./settings.ts";

/** A setting in effect, in its form for people. */
interface ShownSetting {
  readonly key: string;
  /** The environment variable. Undefined: only the file has the setting. */
  readonly variable: string | undefined;
  /** The value in the form of the file: durations in seconds. Null: not set, or a secret. */
  readonly value: unknown;
  readonly default: unknown;
  readonly isSecret: boolean;
  readonly isSet: boolean;
  /** Whether a change takes a restart. */
  readonly isFixed: boolean;
}

/** Lists every setting with the value in effect. Leaves out the values of secrets. */
export function shownSettings(config: Config): readonly ShownSetting[] {
  return settingKeys.map((key) => {
    const setting = settings[key];
    const isSecret = "isSecret" in setting;
    const value = inFile(key, settingIn(config, key));
    const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0);
    return {
      key,
      variable: "env" in setting ? setting.env : undefined,
      value: isSecret || isEmpty ? null : value,
      default: "default" in setting ? setting.default : null,
      isSecret,
      isSet: !isEmpty,
      isFixed: "isFixed" in setting,
    };
  });
}

/** Returns a value in the unit of the file. */
function inFile(key: SettingKey, value: unknown): unknown {
  if (placeOf(key).name.endsWith("Ms"))
    return Array.isArray(value)
      ? value.map((ms) => Number(ms) / 1_000)
      : value === undefined
        ? value
        : Number(value) / 1_000;
  if (typeof value === "object" && value !== null && "windowMs" in value && "count" in value)
    return `${String(value.count)}/${Number(value.windowMs) / 1_000}`;
  return value;
}
