import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useObservable } from '../api/observable'
import { meQuery, stopImpersonation } from '../api/queries'
import type { Me } from '../api/schema'
import { impersonation } from '../api/session'
import { toProviderName } from '../sign-in/provider-buttons'
import { EmptyState } from '../ui/empty-state'
import { showNotice, showProblem } from '../ui/notices'
import { PanelTabs } from '../ui/panel-tabs'
import { Screen } from '../ui/screen'
import classes from './account.module.css'
import { ApiTokenSection } from './api-token-section'
import { EmailSection } from './email-section'
import { IdentitySection } from './identity-section'
import { PasskeySection } from './passkey-section'
import { PasswordSection } from './password-section'
import { ProfileSection } from './profile-section'
import { SecondFactorSection } from './second-factor-section'
import { SessionSection } from './session-section'
import { InvitationSection, WorkspaceSection } from './workspace-section'

/** Why a provider's account could not be linked. */
const LINK_PROBLEMS: Record<string, string> = {
  IDENTITY_EXISTS: 'This account of the provider belongs to another user here.',
  PROVIDER_REFUSED: 'The provider did not confirm who you are.',
}

/** Says how linking a provider ended, as the address says after the user came back from it. */
function useProviderReturn() {
  const { linked, error } = useSearch({ strict: false }) as { linked?: string; error?: string }
  const navigate = useNavigate()
  useEffect(() => {
    if (!linked && !error) return
    if (linked) showNotice(`You can sign in with ${toProviderName(linked)} from now on.`)
    if (error) showProblem(LINK_PROBLEMS[error] ?? `The provider could not be linked: ${error}.`)
    void navigate({ to: '/account', search: { show: 'sign-in' } as never, replace: true })
  }, [linked, error, navigate])
}

const listTabs = (me: Me) => [
  {
    key: 'profile',
    label: 'Profile',
    content: (
      <>
        <ProfileSection me={me} />
        <EmailSection me={me} />
      </>
    ),
  },
  {
    key: 'sign-in',
    label: 'Sign-in',
    content: (
      <>
        <PasswordSection me={me} />
        <SecondFactorSection />
        <PasskeySection />
        <IdentitySection />
      </>
    ),
  },
  { key: 'sessions', label: 'Sessions', content: <SessionSection /> },
  { key: 'tokens', label: 'API tokens', content: <ApiTokenSection /> },
  { key: 'workspaces', label: 'Workspaces', content: <WorkspaceSection me={me} /> },
]

/** The own account: who one is, how one signs in, and who else may act for one. */
export function Account() {
  const { data: me } = useQuery(meQuery)
  const actingAs = useObservable(impersonation)
  useProviderReturn()
  if (!me) return null
  if (actingAs)
    return (
      <Screen title="Your account">
        <EmptyState text={`You act as ${actingAs.name}. Only they can change their account.`}>
          <Button onClick={stopImpersonation}>Stop, and show your own account</Button>
        </EmptyState>
      </Screen>
    )
  return (
    <Screen title="Your account" request={{ method: 'GET', path: '/api/me' }}>
      <div className={classes.page}>
        <InvitationSection />
        <PanelTabs label="Parts of your account" tabs={listTabs(me)} />
      </div>
    </Screen>
  )
}
