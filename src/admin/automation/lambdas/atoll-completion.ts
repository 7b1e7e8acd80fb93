import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { blueprintsQuery, queryClient } from '../../api/queries'
import { type AtollObject, atollMembers } from './atoll-api'

/** What stands before the cursor where the members of an object are wanted. */
const OBJECT_PATTERNS: [RegExp, AtollObject][] = [
  [/\brequest\.\w*$/, 'request'],
  [/\batoll\.\w*$/, 'atoll'],
  [/\bentities\([^()]*\)\s*\.\w*$/, 'entities'],
  [/\bevents\.\w*$/, 'events'],
  [/\bcrypto\.\w*$/, 'crypto'],
]
const BLUEPRINT_PATTERN = /\bentities\((['"`])[\w-]*$/

const toCompletion = ({ name, signature, description }: (typeof atollMembers)['atoll'][number]): Completion => ({
  label: name,
  type: signature.startsWith('(') ? 'function' : 'property',
  detail: signature,
  info: description,
})

/** Suggests what the code of a lambda can use, and the keys of blueprints. */
export async function completeAtoll(context: CompletionContext): Promise<CompletionResult | null> {
  const word = context.matchBefore(/[\w-]*/)
  const from = word?.from ?? context.pos
  const line = context.state.doc.lineAt(context.pos)
  const before = context.state.sliceDoc(line.from, context.pos)
  if (BLUEPRINT_PATTERN.test(before)) {
    const blueprints = await queryClient.ensureQueryData(blueprintsQuery)
    return { from, options: blueprints.map(({ key, name }) => ({ label: key, type: 'constant', detail: name })) }
  }
  const object = OBJECT_PATTERNS.find(([pattern]) => pattern.test(before))?.[1]
  return object ? { from, options: atollMembers[object].map(toCompletion), validFor: /^\w*$/ } : null
}
