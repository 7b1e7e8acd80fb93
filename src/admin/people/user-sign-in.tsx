import { Anchor, Button, PasswordInput, Stack, Switch, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { meQuery } from '../api/queries'
import type { User, UserSignInState } from '../api/schema'
import { toProviderName } from '../sign-in/provider-buttons'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { showNotice, showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'
import classes from './people.module.css'
import { refetchUsers, signInStateQuery, toUserLabel } from './user-queries'

type Credential = 'totp' | 'passkeys' | 'sessions' | 'api-tokens'

/** What an admin can take away when somebody else may have it, or when the user has lost it. */
const removals: Record<Credential, { question: string; text: string; action: string; notice: string }> = {
  totp: {
    question: 'Reset the second factor of',
    text: 'The user then signs in with the password alone, until they set up another one.',
    action: 'Reset second factor',
    notice: 'The second factor was reset.',
  },
  passkeys: {
    question: 'Remove all passkeys of',
    text: 'The user then signs in another way, and can register new ones.',
    action: 'Remove passkeys',
    notice: 'The passkeys were removed.',
  },
  sessions: {
    question: 'End all sessions of',
    text: 'The user has to sign in again on each device.',
    action: 'End sessions',
    notice: 'The sessions have ended.',
  },
  'api-tokens': {
    question: 'Delete all API tokens of',
    text: 'Programs that use them are refused from then on.',
    action: 'Delete API tokens',
    notice: 'The API tokens were deleted.',
  },
}

async function removeCredential(user: User, credential: Credential) {
  const { question, text, action, notice } = removals[credential]
  if (!(await confirmAction({ title: `${question} ${toUserLabel(user)}?`, text, action }))) return
  await fetchData(api.DELETE(`/api/users/{id}/${credential}`, { params: { path: { id: user._id } } }))
  await refetchUsers()
  showNotice(notice)
}

const formatCount = (count: number, noun: string) => `${count.toLocaleString()} ${noun}${count === 1 ? '' : 's'}`

/** Returns the credentials of a user, with how many there are of each. */
const listCredentials = ({ secondFactor, passkeys, sessions, apiTokens }: UserSignInState) =>
  [
    { credential: 'totp', title: 'Second factor', text: secondFactor ? 'on' : '' },
    { credential: 'passkeys', title: 'Passkeys', text: passkeys ? formatCount(passkeys, 'passkey') : '' },
    { credential: 'sessions', title: 'Sessions', text: sessions ? formatCount(sessions, 'session') : '' },
    { credential: 'api-tokens', title: 'API tokens', text: apiTokens ? formatCount(apiTokens, 'API token') : '' },
  ] as const

/** How a user signs in, and what an admin can take away. */
export function UserSignIn({ user }: { user: User }) {
  const { data: me } = useQuery(meQuery)
  const { data: state, error } = useQuery(signInStateQuery(user._id))
  if (error) return <ProblemMessage m={0} error={error} />
  if (!state) return null
  const isOwn = me?._id === user._id
  return (
    <>
      <div className={classes.facts}>
        <Details items={describeState(user, state)} />
      </div>
      <PanelSection title="Credentials">
        <RowList
          label="Credentials"
          rows={listCredentials(state)}
          rowKey={({ credential }) => credential}
          empty=""
          render={({ credential, title, text }) => ({
            title,
            text: text || 'none',
            actions: text && !isOwn && (
              <Button variant="default" onClick={() => removeCredential(user, credential).catch(showProblem)}>
                {removals[credential].action}
              </Button>
            ),
          })}
        />
        {isOwn && (
          <Anchor component={Link} to="/account" search={{ show: 'sign-in' } as never} size="sm">
            Change them in your account
          </Anchor>
        )}
      </PanelSection>
      {!isOwn && <NewPasswordForm user={user} hasPassword={state.password} />}
    </>
  )
}

const describeState = (user: User, { emailVerified, pendingEmail, lastActive, providers }: UserSignInState) =>
  [
    [
      'E-mail address',
      user.email ? (
        <>
          {user.email}{' '}
          <StateTag label={emailVerified ? 'confirmed' : 'not confirmed'} tone={emailVerified ? 'good' : 'warning'} />
        </>
      ) : (
        'none'
      ),
    ],
    ['New address', pendingEmail && `${pendingEmail}, once it is confirmed`],
    ['Last active', lastActive ? <RelativeTime time={lastActive} /> : 'not within 30 days'],
    ['Created', <RelativeTime key="created" time={user.created} />],
    ['Providers', providers.map(toProviderName).join(', ')],
  ] as const

function NewPasswordForm({ user, hasPassword }: { user: User; hasPassword: boolean }) {
  const [password, setPassword] = useState('')
  const [endTokens, setEndTokens] = useState(false)
  const save = useMutation({
    mutationFn: () => {
      const body = { password, ...(endTokens && { endTokens }) }
      return fetchData(api.PUT('/api/users/{id}', { params: { path: { id: user._id } }, body }))
    },
    onSuccess: async () => {
      setPassword('')
      await refetchUsers()
      showNotice('The password was changed, and the sessions of the user have ended.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  const flaw = findFieldError(save.error, 'password')
  return (
    <PanelSection title={hasPassword ? 'Password' : 'Password: none'}>
      <form onSubmit={submit} noValidate>
        <Stack gap="sm" align="flex-start">
          <PasswordInput
            label="New password"
            description="It ends all sessions of the user."
            autoComplete="new-password"
            w="100%"
            value={password}
            error={flaw}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Switch
            size="xs"
            label="Also delete the API tokens"
            checked={endTokens}
            onChange={(event) => setEndTokens(event.currentTarget.checked)}
          />
          {save.error && !flaw && <ProblemMessage m={0} error={save.error} />}
          <Button type="submit" variant="default" loading={save.isPending} disabled={!password}>
            {hasPassword ? 'Change password' : 'Set password'}
          </Button>
          {!hasPassword && (
            <Text size="xs" c="dimmed">
              Without a password, the user signs in by a passkey, a provider, or a mailed link that sets one.
            </Text>
          )}
        </Stack>
      </form>
    </PanelSection>
  )
}
