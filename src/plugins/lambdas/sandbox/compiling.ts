import { allow, engine } from './engine'
import type { Compiled, Place } from './protocol'

type Refusal = { message: string; position?: { line: number; column: number } | null; errors?: Refusal[] }

const OUTPUT = 1 << 20 // characters
const MEMORY = 128 << 20 // bytes

// Macros would run code.
const options = (loader: 'ts' | 'js') =>
  ({ loader, target: 'browser', macro: false, trimUnusedImports: true }) as unknown as Bun.TranspilerOptions

/**
 * The JavaScript of a lambda, or what is wrong with it. What means the same without types stays as it was written, so that
 * errors of a run name its own lines.
 */
export function compiled(code: string): Compiled {
  try {
    const typed = new Bun.Transpiler(options('ts'))
    const made = typed.transformSync(code)
    const { exports, imports } = typed.scan(code)
    if (!exports.includes('default'))
      return refused('A lambda needs a default export: export default async (request, atoll) => …')
    if (new Bun.Transpiler(options('js')).scanImports(made).some(({ path }) => path === 'bun:wrap'))
      return refused('Decorators, accessors and "using" are not known here. Write it without them.')
    if (imports.length)
      return refused(`A lambda cannot import "${imports[0]!.path.slice(0, 100)}": what there is, is in "atoll".`)
    const js = plain(code) === made ? code : made
    if (js.length > OUTPUT) return refused(`It compiles to more than ${OUTPUT} characters.`)
    return parsed(js, js === code)
  } catch (error) {
    const { errors } = error as Refusal
    return { flaws: (errors?.length ? errors : [error as Refusal]).slice(0, 20).map(flawOf) }
  }
}

/** What becomes of it as JavaScript, if it is that. */
function plain(code: string) {
  try {
    return new Bun.Transpiler(options('js')).transformSync(code)
  } catch {
    return undefined
  }
}

/** Whether the engine that runs it can read it, too. */
function parsed(js: string, asWritten: boolean): Compiled {
  allow(MEMORY)
  const runtime = engine.newRuntime()
  const context = runtime.newContext()
  const result = context.evalCode(js, 'lambda.js', { type: 'module', compileOnly: true })
  const flaw = result.error?.consume((error) => context.dump(error) as { message: string; stack?: string })
  if (!result.error) result.value.dispose()
  context.dispose()
  runtime.dispose()
  if (!flaw) return { js }
  const [, line, column] = /lambda\.js:(\d+):(\d+)/.exec(flaw.stack ?? '') ?? []
  const position = asWritten && line ? { line: Number(line), column: Number(column) } : undefined
  return { flaws: [flawOf({ message: `${flaw.message}`, position })] }
}

function flawOf({ message: said, position }: Refusal): Place {
  // It quotes names, which are as long as somebody made them.
  const message = sentenceOf(said)
  if (!position) return { message }
  const { line, column } = position
  return { message: `Line ${line}, column ${column}: ${message}`, line, column }
}

function sentenceOf(said: string): string {
  if (said.startsWith('Maximum call stack')) return 'It is nested too deeply.'
  if (said.startsWith('could not load module'))
    return 'Lambdas cannot import modules. Use atoll.fetch, atoll.crypto, atoll.entities and atoll.events.'
  return `${said.slice(0, 300)}.`
}

const refused = (message: string): Compiled => ({ flaws: [{ message }] })
