import { Value } from '@sinclair/typebox/value'
import type { Ctx } from '../accounts/context'
import { Problem } from '../core/problem'
import { parseWithShape } from '../core/shapes'
import { compile } from './compiler'
import { toBuild, upsert } from './components'
import { ComponentDraft } from './shapes'

/** Makes or changes several components, each on its own: what is wrong with one is told there, and stops no other. */
export async function upsertAll(ctx: Ctx, sent: unknown[]) {
  const contents = [...new Set(sent.map(validContentOf).filter((content) => content !== undefined))]
  const outcomes = await compile(ctx, contents)
  const results = []
  for (const item of sent) {
    const result = await tryUpsert(async () => {
      const draft = parseWithShape(ComponentDraft, item)
      const build = draft.content === undefined ? undefined : toBuild(outcomes[contents.indexOf(draft.content)]!)
      return upsert(ctx, draft, build)
    })
    results.push({ identifier: identifierOf(item), ...result })
  }
  const succeeded = results.filter(({ success }) => success).length
  return { total: sent.length, succeeded, failed: sent.length - succeeded, results }
}

const validContentOf = (one: unknown) => (Value.Check(ComponentDraft, one) ? one.content : undefined)

function identifierOf(one: unknown) {
  const { identifier } = (one ?? {}) as { identifier?: unknown }
  return typeof identifier === 'string' ? identifier.slice(0, 200) : null
}

async function tryUpsert<T>(work: () => Promise<T>) {
  try {
    return { success: true, component: await work() }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { code, message, more } = error
    return { success: false, code, error: message, details: more.details }
  }
}
