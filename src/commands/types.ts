import { basename, dirname, relative } from 'node:path'
import { Command } from 'commander'
import { badRequest } from '../core/problem'
import { databases } from '../tenancy/databases'
import { getTenant } from '../tenancy/tenants'
import { writeFileAtomic, writeTexts } from './output'
import { fetchFromServer } from './server-request'
import { readTargetOptions, type TargetOptions } from './target-options'

type TypesOptions = { tenant?: string; client?: boolean; hooks?: string; out?: string; json?: boolean }

export const types = new Command('types')
  .description("Write a tenant's blueprints as TypeScript")
  .option('--tenant <id>', "tenant ID; with --url, defaults to that host's tenant")
  .option('--client', 'include an API client for the tenant')
  .option(
    '--hooks <file>',
    'with --client and --out: write React hooks for the client, built on TanStack Query, to this file',
  )
  .option('--out <file>', 'output file (default: standard output)')
  .option('--json', 'print JSON')
  .action(async ({ client, hooks, out, json }: TypesOptions, command: Command) => {
    const target = readTargetOptions(command)
    try {
      if (hooks && !(client && out)) badRequest({ path: '--hooks', message: '--hooks requires --client and --out.' })
      const texts = await readTypes(target, client ? 'client' : 'types')
      if (out) {
        await writeFileAtomic(texts, out)
        const { toHooksSource } = await import('../blueprints/typegen/client-source')
        if (hooks) await writeFileAtomic([toHooksSource(toModulePath(hooks, out))], hooks)
        const files = hooks ? `${out} and ${hooks}` : out
        console.log(json ? JSON.stringify({ file: out, ...(hooks && { hooks }) }) : `Wrote ${files}.`)
      } else if (json) console.log(JSON.stringify({ text: (await Array.fromAsync(texts)).join('') }))
      else await writeTexts(texts, Bun.stdout.writer())
    } finally {
      await databases.close()
    }
  })

/** Returns the types of a tenant in texts, those of another server as they arrive. */
async function readTypes(target: TargetOptions, kind: 'client' | 'types'): Promise<AsyncIterable<string>> {
  if (target.url === undefined) {
    const { generateTypes } = await import('../blueprints/typegen/generator')
    return generateTypes(await getTenant(target.tenant), kind)
  }
  const path = kind === 'client' ? 'client.ts' : 'types.d.ts'
  const { body } = await fetchFromServer(target, `/api/blueprints/${path}`)
  return body!.pipeThrough(new TextDecoderStream() as never)
}

/** Returns how a module is imported by another one. */
function toModulePath(from: string, to: string) {
  const folder = relative(dirname(from), dirname(to)).replaceAll('\\', '/')
  const start = folder.startsWith('..') ? folder : ['.', folder].filter(Boolean).join('/')
  return `${start}/${basename(to).replace(/\.ts$/, '')}`
}
