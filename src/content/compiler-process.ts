import type { FieldError } from '../core/problem'

declare const self: Worker

/** The result of compiling a component's content: the files for browsers, or the errors with their positions. */
export type CompileOutcome =
  | { js: string; css: string }
  | { flaws: (FieldError & { line?: number; column?: number })[] }

/** The limits of a process: bytes of memory, ms for each content, and characters of compiled JavaScript. */
export type CompileLimits = { memoryBytes: number; timeMs: number; outputCharacters: number }

/** The signal by which a process that exceeds its limits ends itself. */
export const LIMIT_SIGNAL = 'SIGALRM'

/**
 * Compiles the contents from standard input, and writes one outcome per line. It runs in a process of its own, which
 * receives only the text of this function, so it must not refer to anything outside it. `limitSignal` is
 * `LIMIT_SIGNAL`.
 */
export async function runCompilerProcess(limits: CompileLimits, limitSignal: typeof LIMIT_SIGNAL) {
  type Place = { line: number; column: number }
  type Refusal = { message: string; position?: Place | null; errors?: Refusal[] }

  const transpiler = new Bun.Transpiler({
    loader: 'tsx',
    target: 'browser',
    // @ts-expect-error macros would run code during compilation; its types lack that `false` disables them
    macro: false,
    trimUnusedImports: true,
    tsconfig: JSON.stringify({ compilerOptions: { jsx: 'react' } }),
  })

  /** The compiler blocks the main thread, so another thread ends the process when it exceeds its limits. */
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

  // Matches elements of style, and comments and strings, whose content must not be taken for one.
  const SKIPPED_PARTS =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|<style(?:\s[^>]*)?>(?!\s*[{<])([\s\S]*?)<\/style\s*>/g

  /**
   * Extracts the elements of style; the other code keeps its position. A style that contains an expression belongs to
   * JSX.
   */
  function split(content: string) {
    const styles: string[] = []
    const code = content.replace(SKIPPED_PARTS, (part, style?: string) => {
      // The automatic runtime of JSX would leave names that only a bundler can resolve.
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
    // The message may quote names of any length.
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
