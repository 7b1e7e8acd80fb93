import { rename, rm } from 'node:fs/promises'
import type { FileSink } from 'bun'
import { Command } from 'commander'
import { written } from '../blueprints/types/files'
import { invalid } from '../core/problem'
import { storage } from '../tenancy/storage'
import { tenantNamed } from '../tenancy/tenants'

type Asked = { tenant: string; client?: boolean; out?: string; json?: boolean }
type Texts = AsyncIterable<string>

export const types = new Command('types')
  .description("write a tenant's blueprints as TypeScript")
  .requiredOption('--tenant <id>', 'the id of the tenant')
  .option('--client', 'with a client of its entities')
  .option('--out <file>', 'where to write it; printed when not given')
  .option('--json', 'answer in JSON')
  .action(async ({ tenant, client, out, json }: Asked) => {
    try {
      const texts = written(await tenantNamed(tenant), client ? 'client' : 'types')
      if (out) {
        await keep(texts, out)
        console.log(json ? JSON.stringify({ file: out }) : `Wrote ${out}.`)
      } else if (json) console.log(JSON.stringify({ text: (await Array.fromAsync(texts)).join('') }))
      else await write(texts, Bun.stdout.writer())
    } finally {
      await storage.close()
    }
  })

/** What is there stays whole until all of the new one is. */
async function keep(texts: Texts, file: string) {
  const draft = `${file}.${process.pid}.tmp`
  try {
    await write(texts, Bun.file(draft).writer())
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    if (!(error instanceof Error && 'syscall' in error)) throw error
    invalid({ path: '--out', message: `"${file}" cannot be written: ${error.message}.` })
  }
}

async function write(texts: Texts, sink: FileSink) {
  for await (const text of texts) {
    sink.write(text)
    await sink.flush()
  }
  await sink.end()
}
