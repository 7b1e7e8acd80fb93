import { api, fetchData } from '../../api/client'
import type { NewBlueprint } from '../../api/schema'
import type { SampleEntity } from '../../templates/template'

const MAX_ENTITIES = 20

/** Sample entities by the keys of their blueprints. */
export type SampleData = Record<string, SampleEntity[]>

const INSTRUCTIONS = `You write sample data for an application. Answer with JSON alone: an object that has for each blueprint,
by its key, a list of five entities. Each entity has an "identifier" (small letters, digits and dashes) and the fields of
its blueprint. A field of the type "relation" has the identifier of an entity of its target. Dates are YYYY-MM-DD,
decimals are texts.`

type Completion = { choices: { message: { content: string | null } }[] }

/** Returns the JSON of an answer, for some models surround it with words. */
function extractObject(text: string): unknown {
  try {
    return JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1))
  } catch {
    return undefined
  }
}

/** Asks a model for sample entities of blueprints. @throws Error when its answer has none, and what completions throw */
export async function suggestSampleData(sourceId: string, blueprints: NewBlueprint[], purpose: string) {
  const described = blueprints.map(({ key, name, fields }) => ({ key, name, fields }))
  const completion = (await fetchData(
    api.POST('/api/ai/sources/{sourceId}/chat-completion/plain', {
      params: { path: { sourceId } },
      body: {
        messages: [
          { role: 'system', content: INSTRUCTIONS },
          { role: 'user', content: `${purpose}\n\n${JSON.stringify(described)}` },
        ],
        response_format: { type: 'json_object' },
      },
    }),
  )) as Completion
  const answer = extractObject(completion.choices[0]?.message.content ?? '')
  const samples: SampleData = {}
  for (const { key } of blueprints) {
    const entities = (answer as Record<string, unknown> | undefined)?.[key]
    if (!Array.isArray(entities)) continue
    const objects = entities.filter((each) => each && typeof each === 'object').slice(0, MAX_ENTITIES)
    samples[key] = objects.map((each, n) => ({ ...each, identifier: String(each.identifier ?? `sample-${n + 1}`) }))
  }
  if (!Object.keys(samples).length) throw new Error('The model wrote no sample data. Try again, or go on without.')
  return samples
}
