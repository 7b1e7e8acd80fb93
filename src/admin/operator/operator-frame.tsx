import { Button, PasswordInput, Stack, Text, Title } from '@mantine/core'
import {
  IconBuilding,
  IconCertificate,
  IconHeartbeat,
  IconHistory,
  IconKey,
  IconListDetails,
  IconLogout,
  IconSettings,
} from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { Outlet } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { useObservable } from '../api/observable'
import { ColorSchemeButton } from '../frame/color-scheme-button'
import classes from '../frame/frame.module.css'
import { PageLayout } from '../frame/page-layout'
import type { Section } from '../frame/section'
import { Confirmation } from '../ui/confirmation'
import { FullPage } from '../ui/full-page'
import { ProblemMessage } from '../ui/problem-message'
import { operatorToken, signInOperator, signOutOperator } from './operator-api'

const toSection = (label: string, name: string, icon: Section['icon']): Section => {
  const path = `/operator/${name}`
  return { label, path, icon, pages: [{ label, path }] }
}

const sections = [
  toSection('Tenants', 'tenants', IconBuilding),
  toSection('Health', 'health', IconHeartbeat),
  toSection('Certificates', 'certificates', IconCertificate),
  toSection('Log', 'log', IconListDetails),
  toSection('Events', 'events', IconHistory),
  toSection('Tokens', 'tokens', IconKey),
  toSection('Settings', 'settings', IconSettings),
]

/** The pages of the operator, who runs the installation. They belong to no tenant, and ask for the operator's token. */
export function OperatorFrame() {
  const token = useObservable(operatorToken)
  if (!token) return <OperatorSignIn />
  const brand = (
    <Text fw={600} className={classes.name}>
      Operator
    </Text>
  )
  const foot = (
    <>
      <ColorSchemeButton />
      <Button variant="subtle" color="gray" leftSection={<IconLogout size={16} />} onClick={signOutOperator}>
        Sign out
      </Button>
    </>
  )
  return (
    <div className={classes.frame}>
      <PageLayout sections={sections} brand={brand} foot={foot}>
        <Outlet />
      </PageLayout>
      <Confirmation />
    </div>
  )
}

function OperatorSignIn() {
  const [token, setToken] = useState('')
  const signIn = useMutation({ mutationFn: () => signInOperator(token.trim()) })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signIn.mutate()
  }
  return (
    <FullPage>
      <Title order={1}>Operator</Title>
      <Text c="dimmed" size="sm" mb="md">
        These pages run the whole installation. They ask for the token of the setting ATOLL_OPERATOR_TOKEN, or for one
        that was created here, and forget it when this tab is closed.
      </Text>
      <form onSubmit={submit}>
        <Stack gap="sm">
          <PasswordInput
            label="Operator token"
            autoComplete="off"
            autoFocus
            value={token}
            onChange={(event) => setToken(event.currentTarget.value)}
          />
          {signIn.error && <ProblemMessage error={signIn.error} />}
          <Button type="submit" size="sm" loading={signIn.isPending} disabled={!token.trim()}>
            Sign in
          </Button>
        </Stack>
      </form>
    </FullPage>
  )
}
