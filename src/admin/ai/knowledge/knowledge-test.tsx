import { Button, Group, Progress, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../../api/client'
import { ProblemMessage } from '../../ui/problem-message'
import classes from './knowledge.module.css'

/** Shows the parts of files that an agent would get for a question, and how well each fits. */
export function KnowledgeTest({ agent }: { agent: string }) {
  const [question, setQuestion] = useState('')
  const search = useMutation({
    mutationFn: () =>
      fetchData(api.POST('/api/ai/agents/{id}/search', { params: { path: { id: agent } }, body: { question } })),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    search.mutate()
  }
  const best = search.data?.[0]?.score ?? 1
  return (
    <Stack gap="sm">
      <form onSubmit={submit}>
        <Group gap="xs" align="flex-end" wrap="nowrap">
          <TextInput
            flex={1}
            label="Question"
            description="Results that the agent would find for you, in all files that it can use."
            value={question}
            onChange={(event) => setQuestion(event.currentTarget.value)}
          />
          <Button type="submit" size="sm" disabled={!question.trim()} loading={search.isPending}>
            Search
          </Button>
        </Group>
      </form>
      {search.error && <ProblemMessage error={search.error} />}
      <div role="status">
        {search.data?.length === 0 && (
          <Text size="sm" c="dimmed">
            Nothing fits this question.
          </Text>
        )}
      </div>
      <ol className={classes.excerpts}>
        {search.data?.map(({ fileId, fileName, chunk, text, score }) => (
          <li key={`${fileId} ${chunk}`}>
            <Group justify="space-between" gap="xs" wrap="nowrap">
              <Text size="xs" truncate dir="auto">
                {fileName || fileId.slice(0, 8)}, part {chunk + 1}
              </Text>
              <Text size="xs" c="dimmed">
                {score.toFixed(4)}
              </Text>
            </Group>
            <Progress value={(score / best) * 100} size={2} aria-label={`Score of part ${chunk + 1}`} my={4} />
            <p className={classes.excerpt} dir="auto">
              {text}
            </p>
          </li>
        ))}
      </ol>
    </Stack>
  )
}
