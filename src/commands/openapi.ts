import { Command } from 'commander'
import { storage } from '../tenancy/storage'
import { keep, write } from './output'

export const openapi = new Command('openapi')
  .description('Write the description of the API (OpenAPI)')
  .option('--out <file>', 'the file to write; default: standard output')
  .option('--json', 'print JSON')
  .action(async ({ out, json }: { out?: string; json?: boolean }) => {
    try {
      const { app } = await import('../app')
      const { describe } = await import('../operations/description/document')
      const text = `${JSON.stringify(describe(app.routes), null, 2)}\n`
      if (!out) return await write([text], Bun.stdout.writer())
      await keep([text], out)
      console.log(json ? JSON.stringify({ file: out }) : `Wrote ${out}.`)
    } finally {
      await storage.close()
    }
  })
