import type { FieldError } from '../core/problem'

declare const self: Worker

/** What became of a component's content: what browsers load, or what is wrong with it and where. */
export type CompileOutcome =
  | { js: string; css: string }
  | { flaws: (FieldError & { line?: number; column?: number })[] }

/** What a process may take: bytes of memory, ms for each content, and characters of the js that it makes. */
export type CompileLimits = { memoryBytes: number; timeMs: number; outputCharacters: number }

/** By which a process that exceeds its bounds ends itself. */
export const LIMIT_SIGNAL = 'SIGALRM'

/**
 * Compiles the contents that come by standard input, and tells an outcome a line. Runs in a process of its own, which
 * gets the text of this function and nothing else: it may name nothing from outside, and `exceeded` is `EXCEEDED`.
 */
export async function runCompilerProcess(limits: CompileLimits, limitSignal: typeof LIMIT_SIGNAL) {
  type Place = { line: number; column: number }
  type Refusal = { message: string; position?: Place | null; errors?: Refusal[] }

  // Macros would run code.
  const transpiler = new Bun.Transpiler({
    loader: 'tsx',
    target: 'browser',
    macro: false,
    trimUnusedImports: true,
    tsconfig: { compilerOptions: { jsx: 'react' } } as object,
  } as unknown as Bun.TranspilerOptions)

  /** While the compiler is at it, this thread hears nothing; the other one ends both when it takes too much. */
  function enforceLimits(limits: CompileLimits, limitSignal: string) {
    const end = () => process.kill(process.pid, limitSignal)
    let alarm: Timer | undefined
    setInterval(() => process.memoryUsage.rss() > limits.memoryBytes && end(), 10)
    self.onmessage = () => {
      clearTimeout(alarm)
      alarm = setTimeout(end, limits.timeMs)
      self.postMessage('watched')
    }
  }
  const code = `(${enforceLimits})(${JSON.stringify(limits)}, ${JSON.stringify(limitSignal)})`
  const watchdog = new Worker(URL.createObjectURL(new Blob([code])))

  // What is passed over, so that nobody finds a part in it: comments, and texts in quotes.
  const SKIPPED_PARTS =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|<style(?:\s[^>]*)?>(?!\s*[{<])([\s\S]*?)<\/style\s*>/g

  /** Takes the parts of style out; all else keeps its place. A style with an expression in it belongs to JSX. */
  function split(content: string) {
    const styles: string[] = []
    const code = content.replace(SKIPPED_PARTS, (part, style?: string) => {
      // The automatic runtime of JSX would leave names that only a bundler can fill.
      if (style === undefined) return part.startsWith('/') ? part.replace(/@jsx(Runtime|ImportSource)\b/g, blank) : part
      styles.push(style.trim())
      return part.replace(/[^\n]/g, ' ')
    })
    return { code, css: styles.filter(Boolean).join('\n') }
  }

  const blank = (text: string) => ' '.repeat(text.length)

  function compile(content: string): CompileOutcome {
    const { code, css } = split(content)
    try {
      const js = transpiler.transformSync(code)
      if (js.length > limits.outputCharacters)
        return failed(`It compiles to more than ${limits.outputCharacters} characters.`)
      if (new Bun.Transpiler({ loader: 'js' }).scanImports(js).some(({ path }) => path === 'bun:wrap'))
        return failed('Decorators, accessors and "using" are not supported by browsers. Write it without them.')
      return { js, css }
    } catch (error) {
      const { errors } = error as Refusal
      return { flaws: (errors?.length ? errors : [error as Refusal]).slice(0, 20).map(toError) }
    }
  }
  function toError({ message: rawMessage, position }: Refusal) {
    // It quotes names, which are as long as somebody made them.
    const message = rawMessage.startsWith('Maximum call stack')
      ? 'The code is nested too deeply.'
      : `${rawMessage.slice(0, 300)}.`
    if (!position) return { path: '/content', message }
    const { line, column } = position
    return { path: '/content', message: `Line ${line}, column ${column}: ${message}`, line, column }
  }
  const failed = (message: string) => ({ flaws: [{ path: '/content', message }] })

  for (const content of JSON.parse(await Bun.stdin.text()) as string[]) {
    const acknowledged = new Promise((resolve) => {
      watchdog.onmessage = resolve
    })
    watchdog.postMessage('next')
    await acknowledged
    await Bun.write(Bun.stdout, `${JSON.stringify(compile(content))}\n`)
  }
  process.exit(0)
}
