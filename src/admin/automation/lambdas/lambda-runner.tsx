import { Button, Group, Stack, Text } from '@mantine/core'
import { IconPlayerPlay } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../../api/client'
import { keepDraft, readDraft } from '../../api/drafts'
import { queryClient } from '../../api/queries'
import type { Lambda, LambdaExecution, LambdaInput } from '../../api/schema'
import { CodeBlock } from '../../ui/code-block'
import { CodeEditor } from '../../ui/code-editor'
import { ProblemMessage } from '../../ui/problem-message'
import { StateTag } from '../../ui/state-tag'
import { runSummariesQuery } from './lambda-queries'
import { LAMBDA_INPUT_TEMPLATE } from './lambda-template'
import { LogLines } from './log-lines'
import { RunFailure } from './run-failure'
import { saveByKey } from './save-shortcut'

/** Returns the request of a run by hand. @throws SyntaxError when it is not JSON */
const parseInput = (text: string): LambdaInput => (text.trim() ? JSON.parse(text) : {})

type LambdaRunnerProps = { lambda: Lambda; isDirty: boolean; saveChanges(): Promise<void> }

/** Runs a lambda by hand, and shows its result and its log. What is not saved yet is saved before. */
export function LambdaRunner({ lambda: { _id }, isDirty, saveChanges }: LambdaRunnerProps) {
  const draftKey = `lambda-input:${_id}`
  const [input, setInput] = useState(() => readDraft<string>(draftKey) ?? LAMBDA_INPUT_TEMPLATE)
  const [flaw, setFlaw] = useState<string>()
  const run = useMutation({
    mutationFn: async (body: LambdaInput) => {
      await saveChanges()
      const answer = api.POST('/api/lambdas/{id}/execute', { params: { path: { id: _id } }, body })
      return fetchData(answer)
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: runSummariesQuery.queryKey }),
  })
  const changeInput = (text: string) => {
    setInput(text)
    keepDraft(draftKey, text)
    setFlaw(undefined)
  }
  const start = () => {
    if (run.isPending) return
    try {
      run.mutate(parseInput(input))
    } catch (error) {
      setFlaw(`This is not JSON yet: ${(error as Error).message}`)
    }
  }
  return (
    <Stack gap="sm" onKeyDownCapture={saveByKey(start)}>
      <CodeEditor
        label="Request"
        description="body, query, headers, method, path and event; each is optional."
        language="json"
        value={input}
        onChange={changeInput}
        error={flaw}
      />
      <Group>
        <Button leftSection={<IconPlayerPlay size={14} />} onClick={start} loading={run.isPending}>
          {isDirty ? 'Save and run' : 'Run'}
        </Button>
        <Text size="xs" c="dimmed">
          Whatever the lambda changes stays changed.
        </Text>
      </Group>
      {run.error && <ProblemMessage error={run.error} />}
      {run.data && <RunResult execution={run.data} />}
    </Stack>
  )
}

function RunResult({ execution: { result, error, logs, durationMs } }: { execution: LambdaExecution }) {
  return (
    <section aria-label="Result" aria-live="polite">
      <Group gap="xs" mb="xs">
        <StateTag label={error ? 'Failed' : 'Done'} tone={error ? 'bad' : 'good'} />
        <Text size="xs" c="dimmed">
          {durationMs} ms
        </Text>
      </Group>
      {error ? (
        <RunFailure failure={error} />
      ) : (
        <CodeBlock label="Result" code={JSON.stringify(result, null, 2) ?? 'null'} />
      )}
      {logs.length > 0 && <LogLines lines={logs} />}
    </section>
  )
}
