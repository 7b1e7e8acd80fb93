import { blocks } from './kinds/blocks'
import { blueprints } from './kinds/blueprints'
import { integrations } from './kinds/integrations'

/** What models draft here. */
export const kinds = { blocks, blueprints, integrations }
export type KindName = keyof typeof kinds
