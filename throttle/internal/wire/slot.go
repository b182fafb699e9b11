package wire

import "strings"

// slots is the number of hash slots of a cluster.
const slots = 16384

// slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, as the cluster specification says.
func slot(key string) uint16 {
	var crc uint16
	tag := HashTag(key)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slots
}

// HashTag returns the text between the first brace and the next closing one, or the key if that is nothing.
func HashTag(key string) string {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if to := strings.IndexByte(key[from+1:], '}'); to > 0 {
			return key[from+1 : from+1+to]
		}
	}
	return key
}
