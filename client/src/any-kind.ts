import type { Entity } from './entity'

/** A blueprint whose fields are unknown. */
export type AnyKind = {
  entity: Entity & { [key: string]: unknown }
  properties: { [key: string]: unknown }
  draft: { [key: string]: unknown }
  change: { [key: string]: unknown }
  relations: { [key: string]: string }
  filters: { [key: string]: string | number | boolean }
  sorted: string
  searched: string
}
