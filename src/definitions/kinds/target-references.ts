import { storeScopes } from '../../ai/knowledge/tables'
import type { KindName as ConnectionKind } from '../../connections/kinds/index'
import { ECHO_SOURCE_ID } from '../../integrations/targets/ai'
import type { Referable } from '../../integrations/targets/target-kind'
import type { Definition, MapReference, PlannedResource } from './definition-kind'

type References = { sourceId?: string; lambdaId?: string; tools?: string[]; blueprints?: string[] }

/** Translates what a target of an integration refers to: connections, lambdas, tools and blueprints. */
export function mapTargetReferences(target: Definition & References, map: MapReference): Definition {
  const { sourceId, lambdaId, tools, blueprints } = target
  const translated: References = {
    ...(sourceId && { sourceId: sourceId === ECHO_SOURCE_ID ? sourceId : map('connection', sourceId) }),
    ...(lambdaId && { lambdaId: map('lambda', lambdaId) }),
    // What is no list is refused by the API.
    ...(Array.isArray(tools) && { tools: mapAll(tools, 'integration', map) }),
    ...(Array.isArray(blueprints) && { blueprints: mapAll(blueprints, 'blueprint', map) }),
  }
  return { ...target, ...translated }
}

/** Returns what targets may refer to after a push, by labels, and the first connection of a kind. */
export function plannedReferences(planned: PlannedResource[]) {
  const find = (kind: PlannedResource['kind'], label: string) =>
    planned.find((resource) => resource.kind === kind && resource.label === label)?.definition
  const isTool = (label: string) => (find('integration', label)?.trigger as Definition | undefined)?.kind === 'tool'
  const referable: Referable = {
    findConnectionKind: async (label) => find('connection', label)?.kind as ConnectionKind | undefined,
    hasLambda: async (label) => !!find('lambda', label),
    findToolIds: async (labels) => labels.filter(isTool),
    findBlueprintKeys: async (labels) => labels.filter((label) => find('blueprint', label)),
  }
  const findAnyConnection = (kind: ConnectionKind) =>
    planned.find((resource) => resource.kind === 'connection' && resource.definition.kind === kind)?.label
  return { ...referable, findAnyConnection }
}

const mapAll = (references: string[], kind: Parameters<MapReference>[0], map: MapReference) =>
  references.map((reference) => map(kind, reference)).filter((reference) => reference !== undefined)

const isScope = (store: string) => (storeScopes as readonly string[]).includes(store)

/** Vector stores that are named by their id are data, and no part of a definition. */
export function withoutStoreIds(target: object): Definition {
  const scopes = storesOf(target).filter(isScope)
  return { ...target, vectorStores: scopes.length ? scopes : undefined }
}

/** Returns the target with the vector stores that `before` names by their id. */
export function withStoreIdsOf<Target extends object>(target: Target, before: object): Target {
  const ids = storesOf(before).filter((store) => !isScope(store))
  return ids.length ? { ...target, vectorStores: [...storesOf(target), ...ids] } : target
}

const storesOf = (target: object) => (target as { vectorStores?: string[] }).vectorStores ?? []
