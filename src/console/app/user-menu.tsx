import type { JSX } from "react";
import { Button as AriaButton } from "react-aria-components/Button";
import { useLocation } from "wouter";
import { mayLeave } from "../parts/leaving.ts";
import { Menu } from "../parts/menu.tsx";
import { signOut, useCaller, useRights } from "./caller.ts";
import { place } from "./place.ts";
import { setTheme, useTheme } from "./theme.ts";

/** Shows the user who is signed in. Offers the themes, the API reference and the sign-out. */
export function UserMenu(): JSX.Element {
  const caller = useCaller().data;
  const { isAdmin } = useRights();
  const theme = useTheme();
  const [, navigate] = useLocation();
  const { docsPath } = place;
  const name = caller?.name ?? "…";
  return (
    <Menu
      label="You"
      trigger={
        <AriaButton className="who">
          <span className="who-face" aria-hidden="true">
            {/^./u.exec(name)?.[0].toUpperCase()}
          </span>
          <span className="who-text">
            <span className="who-name">{name}</span>
            <span className="who-mail">{isAdmin ? "Admin" : caller?.email}</span>
          </span>
        </AriaButton>
      }
      actions={[
        { title: "Your tokens", icon: "key", act: () => navigate("/admin/tokens") },
        { title: "Theme of the system", isSelected: theme === "system", act: () => setTheme("system") },
        { title: "Light", icon: "sun", isSelected: theme === "light", act: () => setTheme("light") },
        { title: "Dark", icon: "moon", isSelected: theme === "dark", act: () => setTheme("dark") },
        ...(docsPath === null
          ? []
          : [
              {
                title: "API reference",
                icon: "book" as const,
                // Without an opener, the new tab gets no copy of the session, whose token is for
                // this tab only.
                act: () => void window.open(docsPath, "_blank", "noopener"),
              },
            ]),
        {
          title: "Sign out",
          icon: "leave",
          act: () => {
            if (mayLeave()) signOut();
          },
        },
      ]}
    />
  );
}
