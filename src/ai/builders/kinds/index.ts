import { blocks } from './blocks'
import { blueprints } from './blueprints'
import { integrations } from './integrations'

/** The kinds of resources that models draft. */
export const draftKinds = { blocks, blueprints, integrations }
export type DraftKindName = keyof typeof draftKinds
