import { Button, Stack, Text } from '@mantine/core'
import { IconMessage, IconTrash } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { meQuery, queryClient } from '../../api/queries'
import type { AiUsageTotal, Thread } from '../../api/schema'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { SidePanel } from '../../ui/side-panel'
import { threadQuery } from '../ai-queries'
import { toTurns } from '../playground/chat-turns'
import { formatCost, Message } from '../playground/message'

/** What all answers of a thread took. Only admins may read it. */
function ThreadUsage({ thread }: { thread: string }) {
  const { data } = useQuery({
    queryKey: ['ai-usage', 'thread', thread],
    queryFn: async () => {
      const query = { thread, groupBy: 'thread' }
      const [total] = await fetchData(api.GET('/api/ai/usage', { params: { query } }))
      return (total as AiUsageTotal | undefined) ?? null
    },
  })
  return data
    ? ` · ${data.totalTokens.toLocaleString()} tokens${data.cost ? ` · cost ${formatCost(data.cost)}` : ''}`
    : null
}

/** One conversation beside the list, to read. */
export function ThreadPanel() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const search = useSearch({ strict: false })
  const { data: me } = useQuery(meQuery)
  const { data: thread, error } = useQuery(threadQuery(id))
  const close = () => navigate({ to: '/ai/threads', search: search as never })
  const deletion = useMutation({
    mutationFn: () => fetchData(api.DELETE('/api/ai/threads/{id}', { params: { path: { id } } })),
    onSuccess: async () => {
      await close()
      await queryClient.invalidateQueries({ queryKey: ['threads', 'list'] })
      showNotice('The thread was deleted.')
    },
    onError: showProblem,
  })
  const confirmAndDelete = async () => {
    const text = 'Its messages and its files cannot be brought back.'
    if (await confirmAction({ title: 'Delete this thread?', text, action: 'Delete thread' })) deletion.mutate()
  }
  return (
    <SidePanel
      title={thread?.title || 'Thread'}
      onClose={close}
      footer={
        thread && (
          <>
            {thread.user === me?._id && (
              <Button
                component={Link}
                to="/ai/playground"
                search={{ agent: thread.integration, thread: id } as never}
                leftSection={<IconMessage size={14} />}
              >
                Continue
              </Button>
            )}
            <Button
              variant="subtle"
              color="red"
              ml="auto"
              leftSection={<IconTrash size={14} />}
              onClick={confirmAndDelete}
            >
              Delete
            </Button>
          </>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {thread && <Transcript thread={thread} showsUsage={!!me?.isPrivileged} />}
    </SidePanel>
  )
}

function Transcript({ thread, showsUsage }: { thread: Thread; showsUsage: boolean }) {
  const turns = toTurns(thread.messages)
  return (
    <Stack gap="lg">
      <Text size="xs" c="dimmed">
        <RelativeTime time={thread.created} /> · {turns.length} {turns.length === 1 ? 'question' : 'questions'}
        {showsUsage && <ThreadUsage thread={thread._id} />}
      </Text>
      {turns.map((turn) => (
        <Message key={turn.id} turn={turn} agent={thread.integration} />
      ))}
    </Stack>
  )
}
