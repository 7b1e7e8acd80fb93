import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { NewBlueprint } from '../../api/schema'
import type { SampleEntity } from '../../templates/template'
import { sortByReferences } from './draft-state'
import type { SampleData } from './sample-data'

/** What was made, and which sample data the server refused. */
export type CreationResult = { keys: string[]; refusals: string[] }

/** Creates blueprints. A relation in a cycle is added as soon as its target exists. */
async function createBlueprints(blueprints: NewBlueprint[]) {
  const sorted = sortByReferences(blueprints)
  const later = new Set(sorted.map(({ key }) => key))
  const incomplete: NewBlueprint[] = []
  for (const blueprint of sorted) {
    later.delete(blueprint.key)
    const fields = blueprint.fields.filter(({ target }) => !target || !later.has(target))
    if (fields.length < blueprint.fields.length) incomplete.push(blueprint)
    await fetchData(api.POST('/api/blueprints', { body: { ...blueprint, fields } }))
  }
  for (const { key, fields } of incomplete)
    await fetchData(api.PUT('/api/blueprints/{key}', { params: { path: { key } }, body: { fields } }))
  return sorted
}

async function addSamples(key: string, entities: SampleEntity[]): Promise<string | undefined> {
  const operations = entities.map(({ identifier, ...data }) => ({ op: 'create' as const, identifier, data }))
  const params = { path: { key } }
  return fetchData(api.POST('/api/blueprints/{key}/entities/batch', { params, body: { operations } })).then(
    () => undefined,
    (error: Error) => `${key}: ${error.message}`,
  )
}

/** Makes blueprints and then their sample data. Sample data that the server refuses is left out. @throws ApiProblem */
export async function createDrafted(blueprints: NewBlueprint[], samples: SampleData): Promise<CreationResult> {
  const created = await createBlueprints(blueprints)
  const refusals: string[] = []
  for (const { key } of created) {
    const refusal = samples[key]?.length ? await addSamples(key, samples[key]) : undefined
    if (refusal) refusals.push(refusal)
  }
  await queryClient.invalidateQueries()
  return { keys: created.map(({ key }) => key), refusals }
}
