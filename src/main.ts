#!/usr/bin/env bun
// What we write is nobody else's to read.
process.umask(0o077)

try {
  // A compiled binary starts itself once more for lambdas: then it is their sandbox and nothing else.
  if (process.argv[2] === 'sandbox' && process.send) await import('./lambdas/sandbox/process-main')
  else await (await import('./commands/program')).run(process.argv)
} catch (error) {
  // A sentence for what a person can mend; the rest with all that helps to find out.
  const { explainFailure, printFailure } = await import('./commands/failure')
  const failure = explainFailure(error)
  if (!failure) throw error
  printFailure(failure, process.argv.includes('--json'))
  process.exit()
}

export {}
