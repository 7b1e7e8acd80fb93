import { Anchor, Button, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { startSession } from '../api/queries'
import { useDocumentTitle } from '../branding/tenant-brand'
import { FullPage } from '../ui/full-page'
import { readMailToken } from './mail-token'
import { RemovedPasswordForm } from './removed-password-form'
import { findChallenge, SecondFactorForm } from './second-factor-form'
import { SignInProblem } from './sign-in-problem'

/** Signs in by the link of a mail once somebody presses the button: mail scanners only open the page. */
export function EmailLink() {
  const navigate = useNavigate()
  const [token] = useState(readMailToken)
  useDocumentTitle('Sign in')
  const goHome = async () => {
    await startSession()
    await navigate({ to: '/home', search: {}, replace: true })
  }
  const signIn = useMutation({
    mutationFn: () => fetchData(api.POST('/api/signin/email/link', { body: { token } })),
    onSuccess: ({ payload }) => (payload.passwordRemoved ? undefined : goHome()),
  })
  const challenge = findChallenge(signIn.error)
  return (
    <FullPage>
      <Title order={1} mb="md">
        Sign in
      </Title>
      {signIn.data?.payload.passwordRemoved ? (
        <RemovedPasswordForm onDone={goHome} />
      ) : challenge ? (
        <SecondFactorForm challenge={challenge} onDone={goHome} onCancel={() => navigate({ to: '/', search: {} })} />
      ) : (
        <Stack gap="sm">
          {signIn.error && <SignInProblem error={signIn.error} />}
          <Button size="sm" loading={signIn.isPending} disabled={!token} onClick={() => signIn.mutate()}>
            Sign in
          </Button>
          <Text size="sm">
            <Anchor component={Link} to="/home" search={{} as never}>
              Sign in another way
            </Anchor>
          </Text>
        </Stack>
      )}
    </FullPage>
  )
}
