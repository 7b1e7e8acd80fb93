/** What every entity has. This is the wrapped shape (`$flat=false`), in which properties are only under `metadata`. */
export interface Entity<Properties = Record<string, unknown>> {
  _id: string
  identifier: string
  /** ISO 8601, UTC, with milliseconds. */
  created: string
  updated: string
  /** Whose it is; null where a guest made it. */
  user: string | null
  workspace: string | null
  metadata: Properties
}

/** The blueprints of the tenant, by key. */
// biome-ignore lint/suspicious/noEmptyInterface: each blueprint adds itself
export interface Blueprints {}
