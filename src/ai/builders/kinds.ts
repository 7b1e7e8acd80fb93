import { blocks } from './kinds/blocks'
import { blueprints } from './kinds/blueprints'
import { integrations } from './kinds/integrations'

/** What models draft here. */
export const draftKinds = { blocks, blueprints, integrations }
export type DraftKindName = keyof typeof draftKinds
