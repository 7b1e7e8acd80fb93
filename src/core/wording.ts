import { DefaultErrorFunction, type ErrorFunctionParameter, ValueErrorType } from '@sinclair/typebox/errors'

/**
 * What does not fit a shape, as a sentence. Of what may be one of several things it tells what is wrong with the one that fits
 * furthest, and where in it. It never shows the value, which may be a secret.
 */
export function sentence(error: ErrorFunctionParameter): string {
  if (error.errorType === ValueErrorType.Kind) return 'Expected object.'
  if (error.errorType !== ValueErrorType.Union) return `${DefaultErrorFunction(error)}.`
  const { schema, path, errors } = error
  const words = (schema.anyOf as { const?: unknown }[]).flatMap((one) => ('const' in one ? [one.const] : []))
  if (words.length > 1) return `Expected one of ${words.filter((word) => word !== '').join(', ')}.`
  const flaws = errors.flatMap((each) => each.First() ?? []).filter(({ type }) => type !== ValueErrorType.Null)
  const [first] = flaws.toSorted((a, b) => b.path.length - a.path.length)
  if (!first) return 'Expected another value.'
  const places = flaws.length > 1 && first.path === path
  if (places) return `${flaws.map(({ message }) => message.slice(0, -1)).join(', or ')}.`
  return first.path === path ? first.message : `At ${first.path}: ${first.message}`
}
