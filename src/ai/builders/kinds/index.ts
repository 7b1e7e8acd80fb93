import { blocks } from './blocks'
import { blueprints } from './blueprints'
import { integrations } from './integrations'

/** What models draft here. */
export const draftKinds = { blocks, blueprints, integrations }
export type DraftKindName = keyof typeof draftKinds
