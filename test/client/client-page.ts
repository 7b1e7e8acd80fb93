import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { launchBrowser } from '../fakes/browser'
import { createTempFolder } from '../fakes/cli'

/** Bundles TypeScript files for a browser, beginning with the file `program.ts` or `program.tsx`. */
export async function bundleForBrowser(files: Record<string, string>): Promise<string> {
  const folder = createTempFolder()
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text)
  const entry = Object.keys(files).find((name) => name.startsWith('program.'))!
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, entry)],
    target: 'browser',
    define: { 'process.env.NODE_ENV': '"development"' },
    plugins: [{ name: 'packages', setup: resolvePackages }],
  })
  return outputs[0]!.text()
}

/** The files are outside of the folder that has the packages. */
const resolvePackages = (build: Bun.PluginBuilder) => {
  build.onResolve({ filter: /^(react|react-dom|@tanstack)(\/|$)/ }, ({ path }) => ({
    path: Bun.resolveSync(path, import.meta.dir),
  }))
}

let browser: ReturnType<typeof launchBrowser> | undefined

const PAGE = '<!doctype html><div id="root"></div><script type="module" src="/program/program.js"></script>'

/** Opens an empty page of a web server of its own, which runs a program. */
export async function openForeignProgram(program: string) {
  const web = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url }) =>
      url.endsWith('.js')
        ? new Response(program, { headers: { 'content-type': 'text/javascript' } })
        : new Response(PAGE, { headers: { 'content-type': 'text/html' } }),
  })
  browser ??= launchBrowser()
  const context = await (await browser).newContext()
  const page = await context.newPage()
  await page.goto(`http://localhost:${web.port}/`)
  const close = async () => {
    await context.close()
    await web.stop(true)
  }
  return { page, [Symbol.asyncDispose]: close }
}

/** Opens an empty page of a server at `localhost`, which runs a program. Returns it with what went wrong there. */
export async function openProgram(
  url: string,
  program: string,
  prepare: (page: Page) => Promise<void> = async () => {},
) {
  browser ??= launchBrowser()
  const context = await (await browser).newContext()
  const origin = url.replace('127.0.0.1', 'localhost')
  await context.route(`${origin}/program/**`, (route) => {
    const isScript = route.request().url().endsWith('.js')
    return route.fulfill({ contentType: isScript ? 'text/javascript' : 'text/html', body: isScript ? program : PAGE })
  })
  const errors: string[] = []
  const open = async () => {
    const page = await context.newPage()
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    await prepare(page)
    await page.goto(`${origin}/program/`)
    return page
  }
  return { page: await open(), open, context, errors, origin, [Symbol.asyncDispose]: () => context.close() }
}
