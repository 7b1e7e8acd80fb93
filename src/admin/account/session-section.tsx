import { Button } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Session } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'
import { refetchAccount, sessionsQuery } from './account-queries'
import { toDeviceName } from './device-name'

const endSession = ({ _id: id }: Session) =>
  fetchData(api.DELETE('/api/me/sessions/{id}', { params: { path: { id } } }))

async function endSessions(sessions: Session[]) {
  const title = `End ${sessions.length} other ${sessions.length === 1 ? 'session' : 'sessions'}?`
  const text = 'Devices that use them have to sign in again.'
  if (!(await confirmAction({ title, text, action: 'End sessions' }))) return
  for (const session of sessions) await endSession(session)
  showNotice('Your other sessions have ended.')
}

/** Where the user is signed in. */
export function SessionSection() {
  const { data: sessions } = useQuery(sessionsQuery)
  const others = sessions?.filter(({ current }) => !current) ?? []
  const endOne = useMutation({ mutationFn: endSession, onSettled: refetchAccount })
  const endAll = useMutation({ mutationFn: () => endSessions(others), onSettled: refetchAccount })
  const error = endOne.error ?? endAll.error
  return (
    <PanelSection
      title="Sessions"
      order={2}
      action={
        others.length > 0 && (
          <Button variant="default" loading={endAll.isPending} onClick={() => endAll.mutate()}>
            End all others
          </Button>
        )
      }
    >
      {error && <ProblemMessage m={0} error={error} />}
      <RowList
        label="Sessions"
        rows={sessions}
        rowKey={({ _id }) => _id}
        empty="You have no session."
        render={(session) => ({
          title: (
            <>
              <span title={session.userAgent}>{toDeviceName(session.userAgent)}</span>
              {session.current && <StateTag label="this one" tone="good" />}
            </>
          ),
          text: (
            <>
              {session.address} · active <RelativeTime time={session.used} /> · began{' '}
              <RelativeTime time={session.created} />
            </>
          ),
          actions: !session.current && (
            <Button
              variant="subtle"
              color="gray"
              loading={endOne.isPending && endOne.variables === session}
              onClick={() => endOne.mutate(session)}
            >
              End
            </Button>
          ),
        })}
      />
    </PanelSection>
  )
}
