import type { CompileError, CompileResult } from './protocol'
import { quickjs, setMemoryLimit } from './quickjs'

type TranspileError = { message: string; position?: { line: number; column: number } | null; errors?: TranspileError[] }

const MAX_OUTPUT_LENGTH = 1 << 20 // characters
const MAX_MEMORY_BYTES = 128 << 20

// Macros would run code during compilation.
const transpilerOptions = (loader: 'ts' | 'js') =>
  ({ loader, target: 'browser', macro: false, trimUnusedImports: true }) as unknown as Bun.TranspilerOptions

/**
 * Returns the JavaScript of a lambda, or its errors. Code without types stays as it was written, so that errors of a
 * run have its line numbers.
 */
export function compileSource(code: string): CompileResult {
  try {
    const transpiler = new Bun.Transpiler(transpilerOptions('ts'))
    const output = transpiler.transformSync(code)
    const { exports, imports } = transpiler.scan(code)
    if (!exports.includes('default'))
      return toFailure('A lambda needs a default export: export default async (request, atoll) => …')
    if (new Bun.Transpiler(transpilerOptions('js')).scanImports(output).some(({ path }) => path === 'bun:wrap'))
      return toFailure('Decorators, accessors and "using" are not supported.')
    if (imports.length)
      return toFailure(`A lambda cannot import "${imports[0]!.path.slice(0, 100)}". Use the parameter "atoll" instead.`)
    const js = transpileJs(code) === output ? code : output
    if (js.length > MAX_OUTPUT_LENGTH)
      return toFailure(`The compiled code has more than ${MAX_OUTPUT_LENGTH} characters.`)
    return checkSyntax(js, js === code)
  } catch (error) {
    const { errors = [] } = error as TranspileError
    return { errors: (errors.length ? errors : [error as TranspileError]).slice(0, 20).map(toCompileError) }
  }
}

/** Returns the code transpiled as JavaScript, or undefined when it is not JavaScript. */
function transpileJs(code: string) {
  try {
    return new Bun.Transpiler(transpilerOptions('js')).transformSync(code)
  } catch {
    return undefined
  }
}

/** Checks that the engine that runs the code can parse it, too. */
function checkSyntax(js: string, isUnchanged: boolean): CompileResult {
  setMemoryLimit(MAX_MEMORY_BYTES)
  const runtime = quickjs.newRuntime()
  const context = runtime.newContext()
  const result = context.evalCode(js, 'lambda.js', { type: 'module', compileOnly: true })
  const syntaxError = result.error?.consume((error) => context.dump(error) as { message: string; stack?: string })
  if (!result.error) result.value.dispose()
  context.dispose()
  runtime.dispose()
  if (!syntaxError) return { js }
  const [, line, column] = /lambda\.js:(\d+):(\d+)/.exec(syntaxError.stack ?? '') ?? []
  const position = isUnchanged && line ? { line: Number(line), column: Number(column) } : undefined
  return { errors: [toCompileError({ message: `${syntaxError.message}`, position })] }
}

function toCompileError({ message: rawMessage, position }: TranspileError): CompileError {
  // The message may quote names of any length.
  const message = toSentence(rawMessage)
  if (!position) return { message }
  const { line, column } = position
  return { message: `Line ${line}, column ${column}: ${message}`, line, column }
}

function toSentence(rawMessage: string): string {
  if (rawMessage.startsWith('Maximum call stack')) return 'The code is nested too deeply.'
  if (rawMessage.startsWith('could not load module'))
    return 'Lambdas cannot import modules. Use atoll.fetch, atoll.crypto, atoll.entities and atoll.events.'
  return `${rawMessage.slice(0, 300)}.`
}

const toFailure = (message: string): CompileResult => ({ errors: [{ message }] })
