import { parseJson } from '../../core/body'
import { assertExactNumbers, InexactNumber, toInexactNumberError } from '../../core/exact-numbers'
import { badRequest, type FieldError, Problem } from '../../core/problem'
import { throwMalformedLine } from './csv-table'

export const toNoFailure = () => undefined
export const toFailure = (error: unknown) => ({ error })

export const isRefusal = (error: unknown) => error instanceof Problem && error.status < 500

/** Returns up to five error messages in one text, at most 500 characters. */
export function describeProblem({ message, more: { details } }: Problem) {
  const flaws = Array.isArray(details) ? (details as FieldError[]).map((flaw) => flaw.message) : []
  return (flaws.length ? flaws.slice(0, 5).join(' ') : message).slice(0, 500)
}

export function parseLine(text: string): unknown {
  try {
    const value = parseJson(text)
    assertExactNumbers(text)
    return value
  } catch (error) {
    if (error instanceof InexactNumber) return badRequest(toInexactNumberError(error, text))
    if (error instanceof SyntaxError) return throwMalformedLine('Each line must be a JSON object.')
    throw error
  }
}
