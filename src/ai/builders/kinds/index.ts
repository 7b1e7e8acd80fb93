import { blocks } from './blocks'
import { blueprints } from './blueprints'
import { integrations } from './integrations'

/** The kinds of resources that models draft. */
export const draftKinds = { blocks, blueprints, integrations }
export type DraftKindName = keyof typeof draftKinds

/** What a model has drafted, as it can be sent to create it; with the id of what was created. */
export type Draft = { kind: DraftKindName; draft: unknown; created?: { _id: string } }
