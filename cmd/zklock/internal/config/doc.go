// Package config reads what users and administrators write for zklock: contexts,
// credentials, TLS settings, zoo.cfg, and JAAS files.
package config
