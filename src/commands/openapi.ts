import { Command } from 'commander'
import { databases } from '../tenancy/databases'
import { writeFileAtomic, writeTexts } from './output'

export const openapi = new Command('openapi')
  .description('Write the OpenAPI document of the API')
  .option('--out <file>', 'output file (default: standard output)')
  .option('--json', 'print JSON')
  .action(async ({ out, json }: { out?: string; json?: boolean }) => {
    try {
      const { app } = await import('../app')
      const { buildOpenApi } = await import('../operations/openapi/document')
      const text = `${JSON.stringify(buildOpenApi(app.routes), null, 2)}\n`
      if (!out) return await writeTexts([text], Bun.stdout.writer())
      await writeFileAtomic([text], out)
      console.log(json ? JSON.stringify({ file: out }) : `Wrote ${out}.`)
    } finally {
      await databases.close()
    }
  })
