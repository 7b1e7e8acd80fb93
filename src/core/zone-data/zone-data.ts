import type { ZoneRules } from './zone-rules'

/** Rules of zones of one version of the IANA time zone database. */
export type ZoneData = {
  /** The release, such as `2026f`. */
  version: string
  /** `built-in`, or the folder that the rules come from. */
  origin: string
  names: string[]
  /** Returns undefined for an unknown zone. */
  readRules(name: string): ZoneRules | undefined
}
