import type { Flaw } from '../core/problem'

declare const self: Worker

/** What became of a component's content: what browsers load, or what is wrong with it and where. */
export type Outcome = { js: string; css: string } | { flaws: (Flaw & { line?: number; column?: number })[] }

/** What a process may take: bytes of memory, ms for each content, and characters of the js that it makes. */
export type Bounds = { memory: number; time: number; output: number }

/** By which a process that exceeds its bounds ends itself. */
export const EXCEEDED = 'SIGALRM'

/**
 * Compiles the contents that come by standard input, and tells an outcome a line. Runs in a process of its own, which
 * gets the text of this function and nothing else: it may name nothing from outside, and `exceeded` is `EXCEEDED`.
 */
export async function compiling(bounds: Bounds, exceeded: typeof EXCEEDED) {
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
  function watching(bounds: Bounds, exceeded: string) {
    const end = () => process.kill(process.pid, exceeded)
    let alarm: Timer | undefined
    setInterval(() => process.memoryUsage.rss() > bounds.memory && end(), 10)
    self.onmessage = () => {
      clearTimeout(alarm)
      alarm = setTimeout(end, bounds.time)
      self.postMessage('watched')
    }
  }
  const code = `(${watching})(${JSON.stringify(bounds)}, ${JSON.stringify(exceeded)})`
  const watch = new Worker(URL.createObjectURL(new Blob([code])))

  // What is passed over, so that nobody finds a part in it: comments, and texts in quotes.
  const PARTS =
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`|<style(?:\s[^>]*)?>(?!\s*[{<])([\s\S]*?)<\/style\s*>/g

  /** Takes the parts of style out; all else keeps its place. A style with an expression in it belongs to JSX. */
  function split(content: string) {
    const styles: string[] = []
    const code = content.replace(PARTS, (part, style?: string) => {
      // The automatic runtime of JSX would leave names that only a bundler can fill.
      if (style === undefined) return part.startsWith('/') ? part.replace(/@jsx(Runtime|ImportSource)\b/g, blank) : part
      styles.push(style.trim())
      return part.replace(/[^\n]/g, ' ')
    })
    return { code, css: styles.filter(Boolean).join('\n') }
  }

  const blank = (text: string) => ' '.repeat(text.length)

  function compile(content: string): Outcome {
    const { code, css } = split(content)
    try {
      const js = transpiler.transformSync(code)
      if (js.length > bounds.output) return refused(`It compiles to more than ${bounds.output} characters.`)
      if (new Bun.Transpiler({ loader: 'js' }).scanImports(js).some(({ path }) => path === 'bun:wrap'))
        return refused('Decorators, accessors and "using" need help that browsers do not have. Write it without them.')
      return { js, css }
    } catch (error) {
      const { errors } = error as Refusal
      return { flaws: (errors?.length ? errors : [error as Refusal]).slice(0, 20).map(flawOf) }
    }
  }
  function flawOf({ message: said, position }: Refusal) {
    // It quotes names, which are as long as somebody made them.
    const message = said.startsWith('Maximum call stack') ? 'It is nested too deeply.' : `${said.slice(0, 300)}.`
    if (!position) return { path: '/content', message }
    const { line, column } = position
    return { path: '/content', message: `Line ${line}, column ${column}: ${message}`, line, column }
  }
  const refused = (message: string) => ({ flaws: [{ path: '/content', message }] })

  for (const content of JSON.parse(await Bun.stdin.text()) as string[]) {
    const watched = new Promise((resolve) => {
      watch.onmessage = resolve
    })
    watch.postMessage('next')
    await watched
    await Bun.write(Bun.stdout, `${JSON.stringify(compile(content))}\n`)
  }
  process.exit(0)
}
