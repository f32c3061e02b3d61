import type { Delivery, JsonRecord } from "../../api/types.ts";

export interface User {
  readonly id: number;
  readonly name: string;
  readonly email: string;
  readonly is_admin: boolean;
  readonly is_disabled: boolean;
  readonly disabled_at: string | null;
  readonly subject: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface Token {
  readonly id: number;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

export interface AuditEntry {
  readonly id: number;
  readonly occurred_at: string;
  readonly action: string;
  readonly actor_kind: string;
  readonly actor_id: number | null;
  readonly actor_name: string | null;
  readonly token_id: number | null;
  readonly source: string | null;
  readonly request_id: string | null;
  readonly subject_kind: string;
  readonly subject_id: string | null;
  readonly details: JsonRecord;
}

interface ResourceInEffect {
  readonly name: string;
  readonly file: string;
  readonly definition: JsonRecord;
  readonly prisma_model: string;
}

export interface SettingInEffect {
  readonly key: string;
  readonly variable: string | null;
  readonly value: unknown;
  readonly default: unknown;
  readonly is_secret: boolean;
  readonly is_set: boolean;
  readonly takes_restart: boolean;
}

export interface ConfigurationInEffect {
  readonly version: string;
  readonly hash: string;
  readonly loaded_at: string;
  readonly resources: readonly ResourceInEffect[];
  readonly settings: readonly SettingInEffect[];
}

export interface Fault {
  readonly message: string;
  readonly file: string | null;
  readonly line: number | null;
  readonly column: number | null;
  readonly excerpt: readonly { readonly line: number; readonly text: string }[] | null;
}

export interface ReloadAnswer {
  readonly is_reloaded: boolean;
  readonly faults: readonly Fault[];
  readonly processes: readonly {
    readonly program: string;
    readonly host: string;
    readonly pid: number;
    readonly outcome: "reloaded" | "refused" | "stopped" | "no_answer";
    readonly configuration: string;
    readonly faults: readonly Fault[];
  }[];
}

export interface DeadLetter extends Delivery {
  readonly user_id: number | null;
  readonly dead_lettered_at: string | null;
}
