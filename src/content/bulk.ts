import { Value } from '@sinclair/typebox/value'
import type { Ctx } from '../accounts/guard'
import { Problem } from '../core/problem'
import { fitting } from '../core/shapes'
import { compile } from './compiler'
import { built, put } from './components'
import { ComponentDraft } from './shapes'

/** Makes or changes several components, each on its own: what is wrong with one is told there, and stops no other. */
export async function putAll(ctx: Ctx, sent: unknown[]) {
  const contents = [...new Set(sent.map(contentOf).filter((content) => content !== undefined))]
  const outcomes = await compile(ctx, contents)
  const results = []
  for (const one of sent) {
    const result = await attempt(async () => {
      const draft = fitting(ComponentDraft, one)
      const build = draft.content === undefined ? undefined : built(outcomes[contents.indexOf(draft.content)]!)
      return put(ctx, draft, build)
    })
    results.push({ identifier: identifierOf(one), ...result })
  }
  const succeeded = results.filter(({ success }) => success).length
  return { total: sent.length, succeeded, failed: sent.length - succeeded, results }
}

const contentOf = (one: unknown) => (Value.Check(ComponentDraft, one) ? one.content : undefined)

function identifierOf(one: unknown) {
  const { identifier } = (one ?? {}) as { identifier?: unknown }
  return typeof identifier === 'string' ? identifier.slice(0, 200) : null
}

async function attempt<T>(work: () => Promise<T>) {
  try {
    return { success: true, component: await work() }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { code, message, more } = error
    return { success: false, code, error: message, details: more.details }
  }
}
