import { Button, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { installationQuery } from '../api/queries'
import { FieldForm, type FormField } from '../fields/field-form'
import { Details } from '../ui/details'
import { showNotice } from '../ui/notices'
import { FormScreen } from './form-screen'
import classes from './form-screen.module.css'
import {
  authConfigurationQuery,
  changeAuthConfiguration,
  type Provider,
  refreshAuthConfiguration,
} from './settings-queries'

const FORM_ID = 'sign-in'

const fields: FormField[] = [
  {
    ...{ key: 'allowSignup', type: 'boolean', required: true, title: 'Everybody may sign up' },
    description: 'Otherwise only admins create users. Default: yes.',
  },
  {
    ...{ key: 'allowEmailSignIn', type: 'boolean', required: true, title: 'Users may sign in by e-mail' },
    description: 'They get a mail with a code and a link, and need no password. Default: no.',
  },
  {
    ...{ key: 'allowedReturnHosts', type: 'string', multi: true, required: false, title: 'Hosts of apps' },
    description: 'Where a sign-in by a provider may lead back to, such as app.example.com. Default: none.',
  },
]

/** Who may sign up, by which providers users sign in, and how long a session lasts. */
export function SignInSettings() {
  const { data, error } = useQuery(authConfigurationQuery)
  const finish = async () => {
    await refreshAuthConfiguration()
    showNotice('Saved.')
  }
  return (
    <FormScreen
      title="Sign-in"
      request={{
        ...{ method: 'PUT', path: '/api/configurations/auth-configuration' },
        body: { metadata: { allowSignup: data?.allowSignup ?? true } },
      }}
      source="Stored in the auth-configuration, which only admins can read. Secrets are encrypted and cannot be read back."
      error={error}
      form={FORM_ID}
      panel={<Outlet />}
      more={data && <Providers providers={data.providers ?? {}} />}
    >
      {data && (
        <FieldForm
          id={FORM_ID}
          fields={fields}
          before={{ allowSignup: true, allowEmailSignIn: false, ...data }}
          draftKey="settings-sign-in"
          save={changeAuthConfiguration}
          onSaved={finish}
        />
      )}
    </FormScreen>
  )
}

function Providers({ providers }: { providers: Record<string, Provider> }) {
  const navigate = useNavigate()
  const { data: installation } = useQuery(installationQuery)
  const names = Object.keys(providers)
  return (
    <>
      <div className={classes.heading}>
        <Title order={2}>Providers</Title>
        <Button variant="default" onClick={() => navigate({ to: '/settings/sign-in/providers/new' })}>
          Add a provider
        </Button>
      </div>
      {names.length ? (
        <ul className={classes.list}>
          {names.map((name) => (
            <li key={name}>
              <Link to="/settings/sign-in/$provider" params={{ provider: name }} className={classes.row}>
                <span>{name}</span>
                <span className={classes.quiet}>{providers[name]?.issuer ?? providers[name]?.clientId}</span>
              </Link>
            </li>
          ))}
        </ul>
      ) : (
        <Text size="sm" c="dimmed">
          Users sign in by a password or a passkey. A provider such as Google, GitHub or your own OpenID Connect server
          lets them in with an account that they have.
        </Text>
      )}
      <div className={classes.heading}>
        <Title order={2}>Sessions and passwords</Title>
      </div>
      {installation && (
        <Details
          items={[
            ['A session ends', `${installation.sessionDays} days after its last use`],
            [
              'An access token',
              `is valid for ${Math.round(installation.accessTokenSeconds / 60)} minutes, as the operator decided`,
            ],
            ['A password', 'has at least 8 characters'],
            ['A second factor', 'is each user’s choice, in their own account'],
          ]}
        />
      )}
    </>
  )
}
