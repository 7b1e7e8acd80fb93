import { Button, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { queryClient, startSession } from '../api/queries'
import { appConfigurationQuery, useDocumentTitle } from '../branding/tenant-brand'
import { FullPage } from '../ui/full-page'
import { showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'

/** Names the product. Without a name it is called by its host, and the settings have a field for it. */
async function nameProduct(name: string) {
  try {
    await fetchData(api.PUT('/api/configurations/app-configuration', { body: { name } }))
    await queryClient.invalidateQueries(appConfigurationQuery())
  } catch (error) {
    showProblem(error)
  }
}

/** The first account of a tenant and the name of its product, which the link that the server prints leads to. */
export function SetUp() {
  const navigate = useNavigate()
  const [token] = useState(() => location.hash.slice(1))
  const [product, setProduct] = useState('')
  const [username, setUsername] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const setUp = useMutation({
    mutationFn: () =>
      fetchData(api.POST('/api/setup', { body: { token, username, password, ...(email && { email }) } })),
    onSuccess: async () => {
      await startSession()
      if (product.trim()) await nameProduct(product.trim())
      await navigate({ to: '/start' })
    },
  })
  useDocumentTitle('Create your account')
  const errorOf = (key: string) => findFieldError(setUp.error, key)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    setUp.mutate()
  }
  return (
    <FullPage>
      <Title order={1}>Create your account</Title>
      <Text c="dimmed" size="sm" mb="md">
        You are the first here, so this account is the administrator.
      </Text>
      <form onSubmit={submit}>
        <Stack gap="sm">
          <TextInput
            label="Username"
            autoComplete="username"
            autoFocus
            required
            value={username}
            error={errorOf('username')}
            onChange={(event) => setUsername(event.currentTarget.value)}
          />
          <TextInput
            label="E-mail address"
            description="Optional. It lets you reset your password."
            type="email"
            autoComplete="email"
            value={email}
            error={errorOf('email')}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            description="At least 8 characters."
            autoComplete="new-password"
            required
            value={password}
            error={errorOf('password')}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <TextInput
            label="Name of your product"
            description="Optional. Mails and pages call it so; the settings can change it."
            autoComplete="organization"
            maxLength={60}
            value={product}
            onChange={(event) => setProduct(event.currentTarget.value)}
          />
          {setUp.error && !['username', 'email', 'password'].some(errorOf) && <ProblemMessage error={setUp.error} />}
          <Button type="submit" size="sm" loading={setUp.isPending}>
            Create account
          </Button>
        </Stack>
      </form>
    </FullPage>
  )
}
